"""A store that speaks as much of S3 as checkpoints need, and fails as it is told to."""

import http.server
import os
import threading
import urllib.parse
from xml.sax.saxutils import escape

DISAPPEARS = 0  # in place of a status
PAGE = 3  # objects of a listing that come at once


class Server(http.server.ThreadingHTTPServer):
    """One bucket, called ours.

    Attributes:
        objects: their contents, by their names.
        fails: gives the status with which to answer a method and a name, or None.
        asked: the methods and names of all requests.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects, self.asked = {}, []
        self.fails = lambda method, name: None
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def variables(self):
        """With which programs find it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_port}",
            "AWS_REGION": "nowhere",
            "AWS_ACCESS_KEY_ID": "me",
            "AWS_SECRET_ACCESS_KEY": "mine",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, content=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def name(self):
        """The name of the object that is asked for; None where an answer has been given."""
        parts = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        bucket, _, name = urllib.parse.unquote(parts.path).lstrip("/").partition("/")
        self.server.asked.append((self.command, name))
        status = 404 if bucket != "ours" else self.server.fails(self.command, name)
        if status is None:
            return name
        if status == DISAPPEARS:
            self.close_connection = True
            return None
        code = {403: "AccessDenied", 404: "NoSuchBucket"}.get(status, "ServiceUnavailable")
        self.answer(status, f"<Error><Code>{code}</Code><Message/></Error>".encode())
        return None

    def do_GET(self):
        name = self.name()
        if name == "":
            self.answer(200, self.listing())
        elif name is not None:
            self.give(name)

    do_HEAD = do_GET

    def give(self, name):
        content = self.server.objects.get(name)
        if content is None:
            self.answer(404, b"<Error><Code>NoSuchKey</Code><Message/></Error>")
        elif self.headers.get("If-Match", tag(content)) != tag(content):
            self.answer(412)
        elif "Range" in self.headers:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            part = content[int(first) : int(last or len(content)) + 1]
            where = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
            self.answer(206, part, ETag=tag(content), Content_Range=where)
        else:
            self.answer(200, content, ETag=tag(content))

    def listing(self):
        prefix, after = self.query.get("prefix", ""), self.query.get("continuation-token", "")
        names = sorted(n for n in [*self.server.objects] if n.startswith(prefix) and n > after)
        page, more = names[:PAGE], len(names) > PAGE
        keys = "".join(f"<Contents><Key>{escape(n)}</Key><Size>1</Size></Contents>" for n in page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        return (
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}"
            f"<KeyCount>{len(page)}</KeyCount>{keys}</ListBucketResult>"
        ).encode()

    def do_PUT(self):
        content = self.rfile.read(int(self.headers["Content-Length"]))
        name = self.name()
        if name in self.server.objects and self.headers.get("If-None-Match") == "*":
            self.answer(412)
        elif name is not None:
            self.server.objects[name] = content
            self.answer(200, ETag=tag(content))

    def do_DELETE(self):
        name = self.name()
        if name is not None:
            self.server.objects.pop(name, None)
            self.answer(204)

    def log_message(self, *_):
        pass


def tag(content):
    return f'"{hash(content):x}"'
