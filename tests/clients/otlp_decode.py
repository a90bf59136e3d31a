"""Prints the spans and metrics in the bodies of requests to an OTLP collector, one JSON object per line.

    python otlp_decode.py BODY ...
"""

import json
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def attributes(pairs):
    found = {}
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        found[pair.key] = getattr(pair.value, kind) if kind != "array_value" else MessageToDict(pair.value)
    return found


def spans(body):
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                events = [{"name": e.name, "attributes": attributes(e.attributes)} for e in span.events]
                yield {"name": span.name, "kind": span.kind, "attributes": attributes(span.attributes), "events": events}


def metrics(body):
    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                for point in getattr(metric, kind).data_points:
                    value = point.sum if kind == "histogram" else point.as_int or point.as_double
                    told = {"metric": metric.name, "unit": metric.unit, "kind": kind, "value": value}
                    yield {**told, "attributes": attributes(point.attributes)}


for path in sys.argv[1:]:
    with open(path, "rb") as file:
        content = file.read()
    read = metrics if path.endswith(".metrics") else spans
    for told in read(content):
        print(json.dumps(told))
