"""``POST /ingest``, ``GET /ingest/{id}``, ``GET /documents``, ``DELETE /documents/{id}``."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, File, Form, Request, Response, UploadFile

from rag_harness.errors import NoRoomError
from rag_harness.files.room import NO_ROOM, check_room
from rag_harness.service.access.json_bytes import fault_of_value, is_flat
from rag_harness.service.access.principal import Principal
from rag_harness.service.access.who_asks import GuardedRoute, asks
from rag_harness.service.corpus.incoming import SPARE
from rag_harness.service.corpus.serving import DocumentInfo
from rag_harness.service.problems import ProblemError, no_room, shortened
from rag_harness.service.routes.request_parts import InCollection, service_of
from rag_harness.service.schemas import Doc, Docs
from rag_harness.service.serviced import no_such_document

router: APIRouter = APIRouter(tags=["documents"], route_class=GuardedRoute)
Ingests = Annotated[Principal, Depends(asks("ingest"))]
_MOST_METADATA = 16_384


@router.post("/ingest", response_model=Doc, responses={202: {"model": Doc}}, summary="Add a document")
async def ingest(
    request: Request,
    response: Response,
    principal: Ingests,
    file: Annotated[UploadFile, File(description="its name's ending says what it is: md, pdf, docx, …")],
    metadata: Annotated[str, Form(max_length=_MOST_METADATA, description='a JSON object, e.g. {"url": …}')] = "{}",
    collection: InCollection = None,
) -> Doc:
    """Read, cut, embed and index a file; one of the same name is replaced. Larger files are answered with 202."""
    service, said = service_of(request), _metadata(metadata)
    name = file.filename or ""
    where = await service.collections.create(service.name_for(principal, collection))
    async with _kept(file, service.incoming) as kept:
        if kept.stat().st_size <= service.options.at_once:
            return _doc(await where.ingest(name, kept, said))
        doc_id = await where.start_ingest(name, kept, said)
    response.status_code = 202
    response.headers["Location"] = f"/ingest/{doc_id}"
    return _doc(where.document(doc_id))


@asynccontextmanager
async def _kept(upload: UploadFile, folder: Path) -> AsyncIterator[Path]:
    """Write an upload into ``folder``, under a random name."""
    handle, path = tempfile.mkstemp(dir=folder)
    try:
        try:
            check_room(folder, SPARE + (upload.size or 0))
            with open(handle, "wb") as target:  # noqa: PTH123 - a descriptor
                await run_sync(shutil.copyfileobj, upload.file, target)
        except NoRoomError as error:
            raise no_room() from error
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise no_room() from error
        yield Path(path)
    finally:
        Path(path).unlink(missing_ok=True)


def _metadata(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text) if is_flat(text) else None
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise ProblemError(422, "bad_metadata", 'metadata is no JSON object, such as {"url": "https://…"}.')
    if fault := fault_of_value(said, "metadata"):
        raise ProblemError(422, "bad_metadata", f"{shortened(fault)}. Leave it out, or send another value.")
    return said


@router.get("/ingest/{doc_id}", response_model=Doc, summary="How far is a document?")
async def ingested(request: Request, doc_id: str, principal: Ingests, collection: InCollection = None) -> Doc:
    """Say what has come of a document so far."""
    where = service_of(request).collection(principal, collection)
    try:
        return _doc(where.document(doc_id))
    except KeyError:
        raise no_such_document() from None


@router.get("/documents", response_model=Docs, summary="Which documents are there?")
async def documents(request: Request, principal: Ingests, collection: InCollection = None) -> Docs:
    """List the documents of a collection by name."""
    where = service_of(request).collection(principal, collection)
    return Docs(collection=where.name, documents=[_doc(each) for each in where.documents()])


@router.delete("/documents/{doc_id}", status_code=204, summary="Remove a document")
async def delete(request: Request, doc_id: str, principal: Ingests, collection: InCollection = None) -> Response:
    """Remove a document: after the answer no question finds it."""
    where = service_of(request).collection(principal, collection)
    try:
        await where.delete(doc_id)
    except KeyError:
        raise no_such_document() from None
    return Response(status_code=204)


def _doc(info: DocumentInfo) -> Doc:
    return Doc(
        doc_id=info.doc_id,
        name=info.name,
        status=info.status,
        why=info.why,
        chunks_created=info.chunks,
        dropped=info.dropped,
        coverage=info.coverage,
        bytes=info.bytes,
        created=info.created,
    )
