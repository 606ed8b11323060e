"""The API through http.client, urllib and, where it is installed, requests; and every webhook through json."""

import hashlib
import hmac
import http.client
import json
import os
import pathlib
import sys
import urllib.error
import urllib.parse
import urllib.request

url, key, secret = os.environ["SHOP_URL"], os.environ["SHOP_KEY"], os.environ["SHOP_SECRET"]
host = urllib.parse.urlsplit(url).netloc
headers = {"X-API-Key": key, "Content-Type": "application/json"}
odd = {"cart": ["ünïcödé 🎂", 1.5, None, {"nested": True}], "": "", "line": "\u2028"}


def order(ref, **fields):
    fields = {"merchantRef": f"python {ref}", "amount": "1000000", "currency": "USDC", "chain": "base", **fields}
    return json.dumps({**fields, "metadata": odd}, ensure_ascii=ref == "2").encode()


def expect(what, status, wanted, answer, *parts):
    assert status == wanted and all(part in str(answer) for part in parts), f"{what}: {status} {answer}"


connection = http.client.HTTPConnection(host)


def call(method, path, body=None, more={}, **options):
    connection.request(method, path, body, {**headers, **more}, **options)
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text else None, answer.headers


def with_http_client():
    status, created, more = call("POST", "/v1/payments", order("1"))
    expect("create", status, 201, created)
    assert created["metadata"] == odd and more["Location"] == f"/v1/payments/{created['id']}", created
    socket = connection.sock
    status, read, _ = call("GET", more["Location"])
    assert read == created, read
    expect("escapes", *call("POST", "/v1/payments", order("2"), {"Expect": "100-continue"})[:1], 201, "")
    pieces = iter([order("3")[:10], order("3")[10:]])
    expect("a chunked body", *call("POST", "/v1/payments", pieces, encode_chunked=True)[:1], 201, "")
    once = {"Idempotency-Key": '"python"'}
    _, first, _ = call("POST", "/v1/payments", order("4"), once)
    status, again, more = call("POST", "/v1/payments", order("4"), once)
    assert again == first and more["Idempotent-Replayed"] == "true", again
    expect("422", *without_headers(call("POST", "/v1/payments", order("5"), once), 422), "IDEMPOTENCY_KEY_REUSED")
    expect("409", *without_headers(call("POST", "/v1/payments", order("1")), 409), created["id"])
    expect("400", *without_headers(call("POST", "/v1/payments", order("6", amount="0")), 400), "'path': 'amount'")
    expect("a byte order mark", *without_headers(call("POST", "/v1/payments", b"\xef\xbb\xbf" + order("7")), 201), "python 7")
    expect("404", *without_headers(call("GET", "/v1/payments/pay_none"), 404), "NOT_FOUND")
    expect("401", *without_headers(call("GET", "/v1/payments", None, {"X-API-Key": "none"}), 401), "UNAUTHORIZED")
    status, nothing, more = call("HEAD", "/v1/payments")
    assert nothing is None and int(more["Content-Length"]) > 100, more
    status, answer, more = call("OPTIONS", "/v1/payments")
    expect("OPTIONS", status, 405, more["Allow"], "GET", "POST")
    seen, cursor = [], ""
    while cursor is not None:
        query = urllib.parse.urlencode({"limit": 2, "cursor": cursor})
        status, page, _ = call("GET", f"/v1/payments?{query}")
        seen += [one["id"] for one in page["data"]]
        cursor = page["cursor"]
    assert len(seen) == len(set(seen)) == 5 and created["id"] in seen, seen
    hook = {"url": os.environ["SHOP_HOOK"] + "/python", "events": ["payment.created"], "secret": "whsec_0123456789abcdef"}
    status, endpoint, _ = call("POST", "/v1/webhooks", json.dumps(hook))
    expect("a webhook endpoint", status, 201, endpoint, "/python")
    expect("its deletion", *without_headers(call("DELETE", f"/v1/webhooks/{endpoint['id']}", "{}"), 200), "deleted")
    assert connection.sock is socket, "the connection was not kept"


def without_headers(answer, wanted):
    status, body, _ = answer
    return status, wanted, body


def with_urllib():
    ask = lambda path, body=None, more={}: urllib.request.Request(url + path, body, {**headers, **more})
    with urllib.request.urlopen(ask("/v1/payments", order("urllib"))) as answer:
        expect("urllib", answer.status, 201, answer.read().decode(), "python urllib")
    try:
        urllib.request.urlopen(ask("/v1/payments", order("urllib")))
        raise AssertionError("created twice")
    except urllib.error.HTTPError as error:
        expect("an error by urllib", error.code, 409, error.read().decode(), "DUPLICATE_MERCHANT_REF")


def with_requests():
    try:
        import requests
    except ImportError:
        return print("skipped: requests is not there (apt-get install python3-requests)")
    session = requests.Session()
    session.headers["X-API-Key"] = key
    created = session.post(f"{url}/v1/payments", json=json.loads(order("requests")))
    expect("requests", created.status_code, 201, created.json()["metadata"]["cart"][0], "🎂")
    page = session.get(f"{url}/v1/payments", params={"limit": 1, "cursor": None, "createdAfter": "2026-01-01T00:00:00+00:00"})
    expect("a page by requests", page.status_code, 200, page.json(), created.json()["id"])
    for _ in range(200):
        limited = session.get(f"{url}/v1/payments/{created.json()['id']}")
        if limited.status_code != 200:
            break
    expect("429", limited.status_code, 429, limited.json(), "RATE_LIMITED")
    assert int(limited.headers["Retry-After"]) > 0


def read_webhooks(folder):
    for file in sorted(pathlib.Path(folder).glob("*.json")):
        body = file.read_bytes()
        signature = file.with_suffix(".signature").read_text()
        assert hmac.compare_digest(hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(), signature), file
        # A lone surrogate is read, and cannot be written again.
        json.dumps(json.loads(body), ensure_ascii=False).encode()


with_http_client()
with_urllib()
with_requests()
read_webhooks(sys.argv[1])
