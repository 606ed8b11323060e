<?php
/** The API through PHP's streams, which speak HTTP/1.0, and every webhook and page through json_decode. */

[$url, $key, $secret] = [getenv("SHOP_URL"), getenv("SHOP_KEY"), getenv("SHOP_SECRET")];

function expect(string $what, bool $isSo, mixed $answer): void
{
    if (!$isSo) {
        fwrite(STDERR, "php: $what: " . var_export($answer, true) . "\n");
        exit(1);
    }
}

/** As an object and as an array: a name that begins with U+0000 is an error for the first. */
function decode(string $what, string $json): object
{
    foreach ([true, false] as $asArray) {
        try {
            $value = json_decode($json, $asArray, 512, JSON_THROW_ON_ERROR);
        } catch (JsonException $error) {
            expect("$what cannot be read: {$error->getMessage()}", false, $json);
        }
    }
    return $value;
}

/** @return array{int, object, array<string, string>} */
function call(string $method, string $path, mixed $body = null, array $more = []): array
{
    global $url, $key;
    $headers = ["X-API-Key: $key", "Content-Type: application/json", ...$more];
    $content = $body === null ? [] : ["content" => json_encode($body, JSON_THROW_ON_ERROR)];
    $http = ["method" => $method, "header" => $headers, "ignore_errors" => true, ...$content];
    $text = file_get_contents($url . $path, false, stream_context_create(["http" => $http]));
    preg_match('~^HTTP/\S+ (\d+)~', $http_response_header[0], $status);
    $found = [];
    foreach ($http_response_header as $line) {
        [$name, $value] = [...explode(": ", $line, 2), ""];
        $found[strtolower($name)] = $value;
    }
    return [(int) $status[1], decode("$method $path", $text), $found];
}

$order = ["merchantRef" => "php 1", "amount" => "1000000", "currency" => "USDC", "chain" => "base"];
$metadata = ["cart" => "ünïcödé 🎂 / </script>", "n" => 0.1];
[$status, $created] = call("POST", "/v1/payments", [...$order, "metadata" => $metadata]);
expect("create", $status === 201 && (array) $created->metadata === $metadata, $created);
[$status, $read] = call("GET", "/v1/payments/$created->id");
expect("get", $status === 200 && $read == $created, $read);
$once = ["Idempotency-Key: php"];
[, $first] = call("POST", "/v1/payments", ["merchantRef" => "php 2"] + $order, $once);
[$status, $again, $found] = call("POST", "/v1/payments", ["merchantRef" => "php 2"] + $order, $once);
expect("idempotent replay", $status === 201 && $again == $first && $found["idempotent-replayed"] === "true", $again);
$errors = [
    "422" => call("POST", "/v1/payments", ["merchantRef" => "php 3"] + $order, $once),
    "409" => call("POST", "/v1/payments", $order),
    "400" => call("POST", "/v1/payments", ["amount" => 1] + $order),
    "404" => call("GET", "/v1/payments/pay_none"),
    "401" => call("GET", "/v1/payments", null, ["X-API-Key: none"]),
];
foreach ($errors as $wanted => [$status, $answer]) {
    expect("$wanted", $status === $wanted && $answer->error->message !== "", $answer);
}
$seen = [];
for ($cursor = ""; $cursor !== null; $cursor = $page->cursor) {
    [$status, $page] = call("GET", "/v1/payments?" . http_build_query(["limit" => 1, "cursor" => $cursor]));
    expect("a page", $status === 200, $page);
    array_push($seen, ...array_column($page->data, "id"));
}
expect("the list", $seen === [$first->id, $created->id], $seen);
$hook = ["url" => getenv("SHOP_HOOK") . "/php", "events" => ["payment.created"], "secret" => "whsec_0123456789abcdef"];
[$status, $endpoint] = call("POST", "/v1/webhooks", $hook);
expect("a webhook endpoint", $status === 201, $endpoint);
[$status, $answer] = call("DELETE", "/v1/webhooks/$endpoint->id");
expect("its deletion", $status === 200 && $answer->deleted, $answer);
for ($i = 0, $status = 200; $i < 200 && $status === 200; $i++) {
    [$status, $answer, $found] = call("GET", "/v1/payments/$created->id");
}
expect("429", $status === 429 && (int) $found["retry-after"] > 0, $answer);

/** Pages that another key listed, and the day's webhooks. */
foreach (glob("$argv[1]/*.page") as $file) {
    decode($file, file_get_contents($file));
}
$kinds = [];
foreach (glob("$argv[1]/*.json") as $file) {
    $body = file_get_contents($file);
    $signature = file_get_contents(str_replace(".json", ".signature", $file));
    expect("the signature of $file", hash_equals(hash_hmac("sha256", $body, $secret), $signature), $body);
    $event = decode($file, $body);
    $kinds[$event->event] = ($kinds[$event->event] ?? 0) + 1;
    new DateTimeImmutable($event->createdAt);
}
expect("every kind of event", count($kinds) === 7, $kinds);
