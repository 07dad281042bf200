import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from llama_index_advanced_rag.errors import ConfigurationError
from llama_index_advanced_rag.openai_compatible import resolve_llm_name


class FakeServer(BaseHTTPRequestHandler):
    """Just enough of /chat/completions; keeps what it was asked."""

    requests: list[tuple[str, str | None, dict]]

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).requests.append((self.path, self.headers["Authorization"], body))
        message = {"role": "assistant", "content": "Paris [1]."}
        answer = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    FakeServer.requests = []
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), FakeServer)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}/v1"
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("model", ["my-own-model", "gpt-4o-mini"])
def test_a_server_of_ones_own_needs_no_key_and_no_known_name(server, model):
    llm = resolve_llm_name(f"openai:{model}", api_base=server)
    assert llm.complete("Capital of France?").text == "Paris [1]."
    assert llm.metadata.context_window >= 8192
    path, authorization, body = FakeServer.requests[0]
    assert (path, authorization, body["model"]) == ("/v1/chat/completions", "Bearer not-needed", model)
    assert body["messages"] == [{"role": "user", "content": "Capital of France?"}]


def test_the_key_of_the_environment_is_sent(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("OPENAI_API_BASE", server)
    resolve_llm_name("openai:any/model:7b").complete("?")
    assert FakeServer.requests[0][1:2] == ("Bearer secret",)
    assert FakeServer.requests[0][2]["model"] == "any/model:7b"


@pytest.mark.parametrize("name", ["gpt-4o-mini", "openai:", "anthropic:claude", ""])
def test_another_provider_is_refused(name):
    with pytest.raises(ConfigurationError, match="Expected 'openai:MODEL'"):
        resolve_llm_name(name)


def test_openai_itself_needs_a_key_and_a_known_model(monkeypatch):
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        resolve_llm_name("openai:gpt-4o-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert resolve_llm_name("openai:gpt-4o-mini").metadata.context_window == 128_000
    with pytest.raises(ConfigurationError, match="does not know an OpenAI model 'no-such'"):
        resolve_llm_name("openai:no-such")
