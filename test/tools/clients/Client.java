import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.HashSet;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The API through java.net.http.HttpClient, which offers an upgrade to HTTP/2 on each new connection. */
public class Client {
  static final String url = System.getenv("SHOP_URL");
  static final String key = System.getenv("SHOP_KEY");
  static final HttpClient client = HttpClient.newHttpClient();
  static final UnaryOperator<HttpRequest.Builder> plain = builder -> builder;

  static HttpRequest request(String method, String path, BodyPublisher body, UnaryOperator<HttpRequest.Builder> more) {
    var builder = HttpRequest.newBuilder(URI.create(url + path)).header("X-API-Key", key).method(method, body);
    if (method.equals("POST")) builder.header("Content-Type", "application/json");
    return more.apply(builder).build();
  }

  static HttpResponse<String> send(HttpRequest request) throws Exception {
    return client.send(request, BodyHandlers.ofString());
  }

  static HttpResponse<String> get(String path) throws Exception {
    return send(request("GET", path, BodyPublishers.noBody(), plain));
  }

  static HttpResponse<String> post(String body, UnaryOperator<HttpRequest.Builder> more) throws Exception {
    return send(request("POST", "/v1/payments", BodyPublishers.ofString(body), more));
  }

  static String order(String ref) {
    return "{\"merchantRef\":\"java " + ref + "\",\"amount\":\"1000000\",\"currency\":\"USDC\",\"chain\":\"base\","
        + "\"metadata\":{\"cart\":\"ünïcödé 🎂\"}}";
  }

  static void expect(String what, HttpResponse<String> answer, int status, String part) {
    if (answer.statusCode() != status || !answer.body().contains(part))
      throw new AssertionError(what + ": " + answer.statusCode() + " " + answer.headers().map() + " " + answer.body());
  }

  static String field(String name, String json) {
    var found = Pattern.compile("\"" + name + "\":\"([^\"]+)\"").matcher(json);
    return found.find() ? found.group(1) : null;
  }

  public static void main(String[] args) throws Exception {
    var created = post(order("1"), plain);
    expect("a POST that offers h2c", created, 201, "ünïcödé 🎂");
    var id = field("id", created.body());
    expect("get", get("/v1/payments/" + id), 200, id);
    expect("Expect: 100-continue", post(order("2"), builder -> builder.expectContinue(true)), 201, "java 2");
    var stream = BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(order("3").getBytes()));
    expect("a chunked body", send(request("POST", "/v1/payments", stream, plain)), 201, "java 3");
    var unknown = BodyPublishers.fromPublisher(BodyPublishers.ofString(order("4")));
    var http1 = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    expect("HTTP/1.1", http1.send(request("POST", "/v1/payments", unknown, plain), BodyHandlers.ofString()), 201, "java 4");

    UnaryOperator<HttpRequest.Builder> once = builder -> builder.header("Idempotency-Key", "java");
    var first = post(order("5"), once);
    var again = post(order("5"), once);
    expect("idempotent replay", again, 201, field("id", first.body()));
    if (again.headers().firstValue("idempotent-replayed").isEmpty()) throw new AssertionError("not said to be replayed");
    expect("422", post(order("6"), once), 422, "IDEMPOTENCY_KEY_REUSED");
    expect("409", post(order("1"), plain), 409, id);
    expect("400", post(order("7").replace("1000000", "0"), plain), 400, "\"path\":\"amount\"");
    expect("404", get("/v1/payments/pay_none"), 404, "NOT_FOUND");
    expect("401", post(order("8"), builder -> builder.setHeader("X-API-Key", "none").expectContinue(true)), 401, "UNAUTHORIZED");
    expect("HEAD", send(request("HEAD", "/v1/payments", BodyPublishers.noBody(), plain)), 200, "");
    expect("OPTIONS", send(request("OPTIONS", "/v1/payments", BodyPublishers.noBody(), plain)), 405, "METHOD_NOT_ALLOWED");
    expect("gzip", send(request("GET", "/v1/payments", BodyPublishers.noBody(), b -> b.header("Accept-Encoding", "gzip"))), 200, "{\"data\":[");

    var seen = new HashSet<String>();
    for (var cursor = ""; cursor != null; ) {
      var page = get("/v1/payments?limit=2&cursor=" + cursor);
      expect("a page", page, 200, "\"data\":[");
      Pattern.compile("\"id\":\"(pay_[^\"]+)\"").matcher(page.body()).results().forEach(one -> seen.add(one.group(1)));
      cursor = field("cursor", page.body());
    }
    if (seen.size() < 5 || !seen.contains(id)) throw new AssertionError("listed: " + seen);

    var hook = "{\"url\":\"" + System.getenv("SHOP_HOOK") + "/java\",\"events\":[\"payment.created\"],\"secret\":\"whsec_0123456789abcdef\"}";
    var registered = send(request("POST", "/v1/webhooks", BodyPublishers.ofString(hook), plain));
    expect("a webhook endpoint", registered, 201, "/java");
    var endpoint = "/v1/webhooks/" + field("id", registered.body());
    expect("its deletion", send(request("DELETE", endpoint, BodyPublishers.noBody(), plain)), 200, "\"deleted\":true");
    expect("another one, with a body", send(request("DELETE", endpoint, BodyPublishers.ofString("{}"), plain)), 404, "NOT_FOUND");

    var many = Stream.generate(() -> request("GET", "/v1/payments/" + id, BodyPublishers.noBody(), plain)).limit(20)
        .map(one -> client.sendAsync(one, BodyHandlers.ofString())).toList();
    for (CompletableFuture<HttpResponse<String>> one : many) expect("many at once", one.get(), 200, id);
    var limited = get("/v1/payments/" + id);
    for (int i = 0; i < 200 && limited.statusCode() == 200; i++) limited = get("/v1/payments/" + id);
    expect("429", limited, 429, "RATE_LIMITED");
    // A number of seconds.
    Integer.parseInt(limited.headers().firstValue("retry-after").orElseThrow());
  }
}
