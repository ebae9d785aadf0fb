// A PRISM client over @grpc/grpc-js and stubs generated from prism.proto: node client.js ADDRESS CA
// TOKEN REQUESTS. REQUESTS is a JSON file: filters to subscribe with, operations to schedule.
// Prints what each scenario saw, a JSON line each.
import { readFileSync } from "node:fs";
import {
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import {
  GetSubscriptionEventsStreamRequest,
  type NewSubscriptionRequest,
  type NewSubscriptionResponse,
  type OperationStatusUpdate,
  operationStatusToJSON,
  PrismNodeClient,
  type ScheduleOperationsRequest,
  type ScheduleOperationsResponse,
  type SubscriptionEvents,
  SubscriptionFilter,
} from "./prism.js";

const [address, ca, token, requests] = process.argv.slice(2) as [string, string, string, string];
const wanted = JSON.parse(readFileSync(requests, "utf-8")) as {
  filters: unknown[];
  operation: string;
  schedule: string;
};
const client = new PrismNodeClient(address, credentials.createSsl(readFileSync(ca)));
const metadata = new Metadata();
metadata.set("authorization", `Bearer ${token}`);

type Callback<T> = (error: ServiceError | null, response: T) => void;

function called<Q, R>(
  method: (request: Q, metadata: Metadata, answer: Callback<R>) => unknown,
  request: Q,
  shown = metadata,
): Promise<R> {
  return new Promise((resolve, reject) =>
    method.call(client, request, shown, (error: ServiceError | null, answer: R) =>
      error ? reject(error) : resolve(answer),
    ),
  );
}

async function code(job: Promise<unknown>): Promise<string> {
  try {
    await job;
    return "OK";
  } catch (error) {
    return status[(error as ServiceError).code] ?? "?";
  }
}

function opened(
  start: Partial<GetSubscriptionEventsStreamRequest>,
): ClientReadableStream<SubscriptionEvents> {
  return client.getSubscriptionEventsStream(
    GetSubscriptionEventsStreamRequest.fromPartial(start),
    metadata,
  );
}

/** Ids up to where the stream is live, and the cursor after the first event. */
async function read(
  start: Partial<GetSubscriptionEventsStreamRequest>,
): Promise<{ ids: string[]; first: string }> {
  const ids: string[] = [];
  let first = "";
  const stream = opened(start);
  stream.on("error", () => undefined); // of our own cancel
  for await (const message of stream as AsyncIterable<SubscriptionEvents>) {
    ids.push(...message.events.map((each) => each.operationId.toString("hex")));
    first ||= message.events.length > 0 ? message.cursor : "";
    if (message.live) {
      break;
    }
  }
  stream.cancel();
  return { ids, first };
}

async function subscribed(filters: SubscriptionFilter[]): Promise<string> {
  const answer = await called<NewSubscriptionRequest, NewSubscriptionResponse>(
    client.newSubscription,
    { filters, allowOperationsBatches: false },
  );
  return answer.subscriptionToken;
}

function tell(scenario: string, saw: unknown): void {
  process.stdout.write(`${JSON.stringify({ scenario, saw })}\n`);
}

const filters = wanted.filters.map((each) => SubscriptionFilter.fromJSON(each));
for (const [at, filter] of filters.entries()) {
  tell(`filter ${at}`, (await read({ subscriptionToken: await subscribed([filter]) })).ids);
}
const all = await subscribed(filters);
const whole = await read({ subscriptionToken: all });
tell("all filters", whole.ids);
tell(
  "resumes by id",
  (await read({ subscriptionToken: all, eventsAfter: Buffer.from(whole.ids[1] ?? "", "hex") })).ids,
);
tell("resumes by cursor", (await read({ subscriptionToken: all, cursor: whole.first })).ids);
tell(
  "since the subscription",
  (await read({ subscriptionToken: all, sinceSubscription: true })).ids,
);
const open = opened({ subscriptionToken: all });
const ended = new Promise<string>((resolve) =>
  open.on("error", (error) => resolve(status[(error as ServiceError).code] ?? "?")),
);
open.resume();
await new Promise((resolve) => open.once("data", resolve));
await called(client.cancelSubscription, { subscriptionToken: all });
tell("cancels", [
  await ended,
  await code(called(client.cancelSubscription, { subscriptionToken: all })),
]);
tell(
  "is asked for its token",
  await code(
    called(client.newSubscription, { filters, allowOperationsBatches: false }, new Metadata()),
  ),
);
const statuses: string[] = [];
for await (const update of client.getOperationStatusStream(
  { operationId: Buffer.from(wanted.operation, "hex") },
  metadata,
) as AsyncIterable<OperationStatusUpdate>) {
  statuses.push(operationStatusToJSON(update.status));
}
tell("follows a status", statuses);
const scheduled = await called<ScheduleOperationsRequest, ScheduleOperationsResponse>(
  client.scheduleOperations,
  { signedOperations: [Buffer.from(wanted.schedule, "hex")] },
);
const [operationId] = scheduled.operationIds;
if (operationId === undefined) {
  throw new Error("no operation was scheduled");
}
const before = await code(called(client.cancelOperation, { operationId, cancelToken: "another" }));
tell("schedules and cancels", [
  operationId.toString("hex"),
  before,
  await code(called(client.cancelOperation, { operationId, cancelToken: scheduled.cancelToken })),
]);
client.close();
