"""Receivers of webhooks, and studies that have something to tell them."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from surepick_server.web.webhook_worker import Deliverer

API = "/api/v1/studies/paint"


@contextmanager
def listening(statuses=()):
    """(address, messages) of a server that answers with these statuses, then with 200."""
    came, answers = [], list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            came.append((dict(self.headers), body.decode()))
            status = answers.pop(0) if answers else 200
            self.send_response(status)
            if status == 302:
                self.send_header("location", "http://127.0.0.1:1/")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hook", came
        finally:
            server.shutdown()
            thread.join()


def set_up(client, people, url, *, private=True, allow=True, **more):
    made = client.post(f"{API}/webhooks", json={"url": url, **more}, headers=people["owner"]).json()
    if allow:
        path = f"{API}/webhooks/{made['id']}/allow"
        assert client.post(path, json={"private": private}, headers=people["admin"]).json()["allowed"]
    return made


def measure(client, people, reward=1.0):
    lease = client.post(f"{API}/leases", json={}, headers=people["measurer"]).json()
    rows = [{"id": one["id"], "key": one["key"], "reward": reward} for one in lease["measurements"]]
    return client.post(f"{API}/results", json={"results": rows}, headers=people["measurer"]).json()


def looked(client, times=1):
    deliverer = Deliverer(client.app.state.server)
    for _ in range(times):
        deliverer.look()
    deliverer.close()
