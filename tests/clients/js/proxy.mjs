// A way to a node that can be cut: `drop` ends every connection through it at once.
import { connect, createServer } from "node:net";

export async function proxy(url) {
  const target = new URL(url);
  const sockets = new Set();
  let opened = 0;
  const server = createServer((socket) => {
    const onward = connect(Number(target.port), target.hostname);
    opened += 1;
    for (const each of [socket, onward]) {
      sockets.add(each);
      each.on("error", () => null); // "close" follows
      each.on("close", () => {
        sockets.delete(each);
        socket.destroy();
        onward.destroy();
      });
    }
    socket.pipe(onward).pipe(socket);
  });
  await new Promise((done) => {
    server.listen(0, "127.0.0.1", done);
  });
  return {
    url: `ws://127.0.0.1:${server.address().port}`,
    opened: () => opened,
    drop: () => {
      for (const each of [...sockets]) {
        each.destroy();
      }
    },
    end: () => {
      server.close();
      for (const each of [...sockets]) {
        each.destroy();
      }
    },
  };
}

// Resolves once `holds` does, and fails after a minute.
export async function until(holds, what) {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    if (await holds()) {
      return;
    }
    await new Promise((done) => {
      setTimeout(done, 50);
    });
  }
  throw new Error(`not within a minute: ${what}`);
}
