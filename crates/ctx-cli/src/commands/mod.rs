//! One file per command.

pub(crate) mod assemble;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod command_host;
pub(crate) mod compact;
pub(crate) mod compactions;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod engines;
pub(crate) mod eval;
pub(crate) mod expand;
pub(crate) mod index;
pub(crate) mod inspect;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod recall;
pub(crate) mod replay;
pub(crate) mod rpc;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod why;
