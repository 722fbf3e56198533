// Parses the diagrams on stdin (a JSON list of strings) with the npm package whose folder is the first argument.
// Prints one JSON line: {version, results: [null | message]}.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const read = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const load = (folder) => import(pathToFileURL(join(folder, read(folder).module)).href);

// Without a browser DOMPurify is an empty shell, and most diagrams call it. Nothing is shown here, so nothing needs purifying.
async function replacePurifier(mermaidFolder) {
  const places = [join(mermaidFolder, "node_modules", "dompurify"), join(mermaidFolder, "..", "dompurify")];
  const folder = places.find((place) => existsSync(place));
  if (folder === undefined) return;
  const purifier = (await load(folder)).default;
  if (!purifier.isSupported) Object.assign(purifier, { addHook: () => {}, sanitize: (text) => String(text) });
}

const folder = process.argv[2];
await replacePurifier(folder);
const { default: mermaid } = await load(folder);
const results = [];
for (const text of JSON.parse(readFileSync(0, "utf8"))) {
  const failed = (error) => String(error?.message ?? error);
  results.push(await mermaid.parse(text).then(() => null, failed));
}
console.log(JSON.stringify({ version: read(folder).version, results }));
process.exit(0);
