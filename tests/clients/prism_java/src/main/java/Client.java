// A PRISM client over grpc-java and stubs generated from prism.proto: java Client ADDRESS CA TOKEN REQUESTS.
// REQUESTS is a JSON file: filters to subscribe with, operations to schedule. Prints what each scenario saw, a JSON line each.

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.ByteString;
import com.google.protobuf.util.JsonFormat;
import eventplane.prism.v1.Prism.*;
import eventplane.prism.v1.PrismNodeGrpc;
import io.grpc.Context;
import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.MetadataUtils;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

public class Client {
  static PrismNodeGrpc.PrismNodeBlockingStub node;

  record Seen(List<String> ids, String first) {}

  public static void main(String[] arguments) throws Exception {
    var credentials = TlsChannelCredentials.newBuilder().trustManager(new File(arguments[1])).build();
    ManagedChannel channel = Grpc.newChannelBuilder(arguments[0], credentials).build();
    var metadata = new Metadata();
    metadata.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + arguments[2]);
    var stranger = PrismNodeGrpc.newBlockingStub(channel);
    node = stranger.withInterceptors(MetadataUtils.newAttachHeadersInterceptor(metadata));
    JsonObject wanted = JsonParser.parseString(Files.readString(Path.of(arguments[3]))).getAsJsonObject();

    var filters = new ArrayList<SubscriptionFilter>();
    for (var each : wanted.getAsJsonArray("filters")) {
      var filter = SubscriptionFilter.newBuilder();
      JsonFormat.parser().merge(each.toString(), filter);
      filters.add(filter.build());
    }
    for (int at = 0; at < filters.size(); at++) {
      tell("filter " + at, read(from(subscribed(List.of(filters.get(at))))).ids());
    }
    String all = subscribed(filters);
    Seen whole = read(from(all));
    tell("all filters", whole.ids());
    tell("resumes by id", read(from(all).setEventsAfter(bytes(whole.ids().get(1)))).ids());
    tell("resumes by cursor", read(from(all).setCursor(whole.first())).ids());
    tell("since the subscription", read(from(all).setSinceSubscription(true)).ids());

    Iterator<SubscriptionEvents> open = node.getSubscriptionEventsStream(from(all).build());
    open.next();
    var cancel = CancelSubscriptionRequest.newBuilder().setSubscriptionToken(all).build();
    node.cancelSubscription(cancel);
    String ended = code(() -> open.forEachRemaining(message -> {}));
    tell("cancels", List.of(ended, code(() -> node.cancelSubscription(cancel))));
    var asked = NewSubscriptionRequest.newBuilder().addAllFilters(filters).build();
    tell("is asked for its token", code(() -> stranger.newSubscription(asked)));

    var statuses = new ArrayList<String>();
    var operation = bytes(wanted.get("operation").getAsString());
    node.getOperationStatusStream(GetOperationStatusStreamRequest.newBuilder().setOperationId(operation).build())
        .forEachRemaining(update -> statuses.add(update.getStatus().name()));
    tell("follows a status", statuses);

    var signed = bytes(wanted.get("schedule").getAsString());
    var scheduled = node.scheduleOperations(ScheduleOperationsRequest.newBuilder().addSignedOperations(signed).build());
    var mine = CancelOperationRequest.newBuilder().setOperationId(scheduled.getOperationIds(0));
    String before = code(() -> node.cancelOperation(mine.setCancelToken("another").build()));
    String after = code(() -> node.cancelOperation(mine.setCancelToken(scheduled.getCancelToken()).build()));
    tell("schedules and cancels", List.of(hex(scheduled.getOperationIds(0)), before, after));
    channel.shutdownNow();
  }

  static GetSubscriptionEventsStreamRequest.Builder from(String token) {
    return GetSubscriptionEventsStreamRequest.newBuilder().setSubscriptionToken(token);
  }

  /** Ids up to where the stream is live, and the cursor after the first event. */
  static Seen read(GetSubscriptionEventsStreamRequest.Builder start) {
    var ids = new ArrayList<String>();
    String first = "";
    Context.CancellableContext context = Context.current().withCancellation();
    Context before = context.attach();
    try {
      Iterator<SubscriptionEvents> stream = node.getSubscriptionEventsStream(start.build());
      while (true) {
        SubscriptionEvents message = stream.next();
        for (var each : message.getEventsList()) {
          ids.add(hex(each.getOperationId()));
        }
        if (first.isEmpty() && message.getEventsCount() > 0) {
          first = message.getCursor();
        }
        if (message.getLive()) {
          return new Seen(ids, first);
        }
      }
    } finally {
      context.detach(before);
      context.cancel(null);
    }
  }

  static String subscribed(List<SubscriptionFilter> filters) {
    return node.newSubscription(NewSubscriptionRequest.newBuilder().addAllFilters(filters).build())
        .getSubscriptionToken();
  }

  static String code(Runnable job) {
    try {
      job.run();
      return "OK";
    } catch (StatusRuntimeException error) {
      return error.getStatus().getCode().name();
    }
  }

  static ByteString bytes(String text) {
    return ByteString.copyFrom(HexFormat.of().parseHex(text));
  }

  static String hex(ByteString raw) {
    return HexFormat.of().formatHex(raw.toByteArray());
  }

  static void tell(String scenario, Object saw) {
    System.out.println(new Gson().toJson(Map.of("scenario", scenario, "saw", saw)));
  }
}
