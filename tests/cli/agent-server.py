#!/usr/bin/env python3
"""A model's server on loopback, for one conversation: a call, then an answer.

    agent-server.py PORT-FILE LOG

Writes its port, and then for each request its headers and body to LOG. Answers
in the form of chat completions, as a stream where one is asked for.
"""
import http.server
import json
import os
import sys

CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"index": 0, "id": "call_1", "type": "function", "function":
     {"name": "run_python", "arguments": '{"code": "print(6 * 7)"}'}}]}
TEXT = {"role": "assistant", "content": "Six times seven is 42."}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(sys.argv[2], "a") as log:
            log.write(json.dumps({"path": self.path, "body": body,
                                  "key": self.headers["Authorization"]}) + "\n")
        called = any(m["role"] == "tool" for m in body["messages"])
        message, reason = (TEXT, "stop") if called else (CALL, "tool_calls")
        self.answer(message, reason, body.get("stream"))

    def answer(self, message, reason, is_stream):
        usage = {"prompt_tokens": 20, "completion_tokens": 8,
                 "total_tokens": 28}
        base = {"id": "chat-1", "model": "m-1", "created": 1}
        if is_stream:
            lines = [dict(base, object="chat.completion.chunk", choices=[
                {"index": 0, "delta": message, "finish_reason": None}]),
                dict(base, object="chat.completion.chunk", choices=[
                    {"index": 0, "delta": {}, "finish_reason": reason}]),
                dict(base, object="chat.completion.chunk", choices=[],
                     usage=usage)]
            text = "".join(f"data: {json.dumps(l)}\n\n" for l in lines)
            text += "data: [DONE]\n\n"
        else:
            text = json.dumps(dict(base, usage=usage, choices=[
                {"index": 0, "message": message, "finish_reason": reason}]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if is_stream
                         else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


def main():
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    with open(sys.argv[1] + ".new", "w") as out:
        out.write(str(server.server_address[1]))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    server.serve_forever()


main()
