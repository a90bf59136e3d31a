// A context engine of OpenClaw that drives `ctx rpc`.

import { Ctx } from "../shared/rpc.mjs";
import { Sessions } from "../shared/session.mjs";
import { Turn } from "./turn.js";

// OpenClaw registers a plugin several times per process and creates an engine for each turn. The state
// that outlives a turn is kept here, with one ctx process per configuration.
const hosts = new Map();

export default function register(api) {
  const config = api.pluginConfig ?? {};
  const log = api.logger ?? console;
  api.registerContextEngine("ctx", (context) => new Turn(host(config, log), context));
}

function host(config, log) {
  const key = JSON.stringify(config);
  const known = hosts.get(key);
  if (known) {
    known.log = log;
    return known;
  }
  const made = { config, log, windows: new Map(), keys: new Map(), said: new Set() };
  const warn = (text) => {
    if (made.said.has(text)) return;
    made.said.add(text);
    made.log.warn(`ctx: ${text}`);
  };
  const { program, home, timeoutSeconds } = config;
  const env = home ? { CTX_HOME: home } : {};
  const timeout = timeoutSeconds && timeoutSeconds * 1000;
  made.sessions = new Sessions(new Ctx({ program, env, timeout, say: warn }), warn);
  hosts.set(key, made);
  return made;
}
