// A context engine of OpenClaw.

import { Host } from "./host.js";
import { Turn } from "./turn.js";

// OpenClaw registers a plugin several times per process and creates an engine for each turn: there is one
// host per configuration.
const hosts = new Map();

export default function register(api) {
  const config = api.pluginConfig ?? {};
  const key = JSON.stringify(config);
  const host = hosts.get(key) ?? new Host(config);
  hosts.set(key, host);
  host.log = api.logger ?? console;
  api.registerContextEngine("ctx", (context) => new Turn(host, context));
}
