// DOME's adapter always listens at 8080. This is loaded before it, and lets it listen at PORT.
const { Server } = require("node:net");

const { listen } = Server.prototype;

Server.prototype.listen = function (_port, ...rest) {
  return listen.call(this, Number(process.env.PORT), ...rest);
};
