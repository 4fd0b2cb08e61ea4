"""Serve a folder of HTML pages as a site on this machine."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_args) -> None:
        """Keep the notebook's output clean."""

    def list_directory(self, _path) -> None:
        self.send_error(404)  # a listing of files is no page of the site


@contextmanager
def serve(folder: str | Path, port: int = 0) -> Iterator[str]:
    """Serve a folder on 127.0.0.1 for the length of a `with` block.

    Parameters
    ----------
    folder : str or Path
        The folder that becomes the root of the site.
    port : int
        0 takes any free port.

    Yields
    ------
    str
        The site's address, with its closing slash.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    """
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"cannot serve {folder}: there is no such folder; give one with HTML pages")
    with ThreadingHTTPServer(("127.0.0.1", port), partial(_QuietHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
