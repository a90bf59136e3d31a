//! The `ctx` binary as a program: exit codes, JSON, and bad input.

mod bad_input;
mod chat;
mod citations;
#[cfg(unix)]
mod clients;
mod commands;
mod compaction;
mod discovered;
mod embedders;
#[cfg(unix)]
mod engine_health;
mod engine_host;
mod engines;
mod engines_check;
#[cfg(unix)]
mod engines_ended;
mod engines_replay;
mod eval;
mod eval_compact;
mod eval_recall;
mod facts_by_model;
mod forget;
mod forget_again;
mod forget_archived;
mod forget_bounds;
mod formats;
mod home;
mod hooks;
mod hostile;
mod ingest;
mod inspector;
mod interrupted;
mod logged;
mod mcp;
mod measured;
mod memory;
mod memory_damage;
mod memory_slot;
mod models;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(unix)]
mod pipes;
#[path = "../../../../tests/it/plugins.rs"]
mod plugins;
mod proxied;
mod readme;
mod recalled;
mod recorded;
mod recorded_compaction;
mod rpc;
mod said;
mod serve;
mod sessions;
mod setup;
mod stats;
mod store;
mod store_erased;
mod support;
mod undo;
mod workspace;
