"""Spans as OpenTelemetry's protocol carries them, OTLP: read from JSON or protobuf, written as JSON.

``otlp_json`` needs the standard library alone; ``otlp_protobuf`` is the only file that imports the protocol's messages.
https://github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/trace/v1/trace.proto
"""
