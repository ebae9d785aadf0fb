// The node's JSON-RPC by one WebSocket that opens again by itself; the last act is kept to be
// shown and copied.
import { signal } from "../vendor/signals.js";

export const link = signal({ state: "connecting", since: Date.now() });
export const sent = signal(null); // { call, line } of the act that was done last

let socket;
let count = 0;
let pause = 250;
const waiting = new Map();
const listeners = new Map();
const early = new Map();

// The answer of a method. Rejects with the node's own words.
export function call(method, ...params) {
  if (!socket || socket.readyState !== WebSocket.OPEN) {
    return Promise.reject(new Error("the node is not connected"));
  }
  count += 1;
  const id = count;
  socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  return new Promise((done, failed) => waiting.set(id, { done, failed }));
}

// As `call`, for what changes the network. When it is done, the page shows the call and the line of
// `pubsub step` that does the same: a text, what a function makes of the answer, or none.
export async function act(line, method, ...params) {
  const result = await call(method, ...params);
  told(typeof line === "function" ? line(result) : line, method, ...params);
  return result;
}

// Shows a call and a line as those of the last act.
export function told(line, method, ...params) {
  sent.value = { call: asCall(method, params), line };
}

export function asCall(method, params) {
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
}

export async function subscribe(method, tell) {
  const id = await call(method);
  listeners.set(id, tell);
  for (const result of early.get(id) || []) {
    tell(result);
  }
  early.delete(id);
}

// Opens the socket; `ready` runs after each opening and asks for what was missed.
export function connect(ready) {
  socket = new WebSocket(location.href.replace(/^http/, "ws").replace(/[?#].*$/, ""));
  socket.onopen = async () => {
    listeners.clear();
    early.clear();
    const away = link.value.state === "away" ? Date.now() - link.value.since : 0;
    try {
      await ready(away);
      pause = 250;
      link.value = { state: "live", away };
    } catch (error) {
      link.value = { state: "away", since: Date.now(), why: error.message };
      socket.close();
    }
  };
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.id !== undefined && message.id !== null) {
      const { done, failed } = waiting.get(message.id) || {};
      waiting.delete(message.id);
      if (!done) {
        return;
      }
      if (message.error) {
        failed(
          new Error(
            typeof message.error.data === "string" ? message.error.data : message.error.message,
          ),
        );
      } else {
        done(message.result);
      }
      return;
    }
    const { subscription, result } = message.params;
    const tell = listeners.get(subscription);
    if (tell) {
      tell(result);
    } else {
      early.set(subscription, [...(early.get(subscription) || []), result]);
    }
  };
  socket.onclose = () => {
    for (const { failed } of waiting.values()) {
      failed(new Error("the connection ended"));
    }
    waiting.clear();
    if (link.value.state !== "away") {
      link.value = { state: "away", since: Date.now() };
    }
    setTimeout(() => connect(ready), pause);
    pause = Math.min(2 * pause, 5000);
  };
}
