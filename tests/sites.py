"""Sites for tests: a dict of paths and answers, served over real HTTP on 127.0.0.1."""

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def html(*links, text="words", head=""):
    anchors = "".join(f'<a href="{link}">link</a>' for link in links)
    return f"<html><head>{head}</head><body><p>{text}</p>{anchors}</body></html>"


def redirect(target):
    return 302, {"Location": target}, b""


class Handler(BaseHTTPRequestHandler):
    """Answers from `server.pages`: HTML text, or (status, headers, body), or a function of the handler."""

    def do_GET(self):
        self.server.asked.append(self.path)
        answer = self.server.pages.get(self.path, (404, {"Content-Type": "text/html"}, html(text="not here")))
        if callable(answer):
            answer = answer(self)
        if answer is None:  # the function has dealt with the connection itself
            return
        status, headers, body = (
            (200, {"Content-Type": "text/html"}, answer) if isinstance(answer, str) else answer
        )
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class QuietServer(ThreadingHTTPServer):
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client that hangs up is part of several tests."""


@contextmanager
def running(pages):
    with QuietServer(("127.0.0.1", 0), Handler) as server:
        server.pages, server.asked, server.stop = pages, [], threading.Event()
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.stop.set()
        server.shutdown()


def paths(found, server):
    return [page.metadata["source"].removeprefix(server.url) for page in found.pages]


def reasons(found, server):
    return {entry.url.removeprefix(server.url): entry.reason for entry in found.skipped}


def resolve_to(monkeypatch, *addresses):
    found = [(socket.AF_INET6 if ":" in a else socket.AF_INET, 1, 6, "", (a, 0)) for a in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *args, **kwargs: found)


def hang_up(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)
