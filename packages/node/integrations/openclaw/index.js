// A context engine of OpenClaw.

import { ContextKeeper } from "../../src/index.js";
import { once } from "../../src/warnings.js";
import { Turn } from "./turn.js";

// OpenClaw registers a plugin several times per process and creates an engine for each turn. What outlives
// a turn is kept here, with one keeper per configuration.
const hosts = new Map();

export default function register(api) {
  const config = api.pluginConfig ?? {};
  const key = JSON.stringify(config);
  const host = hosts.get(key) ?? created(config);
  hosts.set(key, host);
  host.log = api.logger ?? console;
  api.registerContextEngine("ctx", (context) => new Turn(host, context));
}

function created({ program, home, engine, window, timeoutSeconds }) {
  const host = { window, windows: new Map(), keys: new Map() };
  host.keeper = new ContextKeeper({
    format: "pi",
    model: null, // Each request names its own.
    engine,
    program,
    env: home ? { CTX_HOME: home } : {},
    timeout: timeoutSeconds && timeoutSeconds * 1000,
    maxSessions: 64,
    onWarning: once((text) => host.log.warn(`ctx: ${text}`)),
  });
  return host;
}
