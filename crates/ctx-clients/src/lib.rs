//! The agents that ctx knows as clients of its proxy: which program and which configuration files
//! they have, how they are pointed at the proxy, and how that is undone.
//!
//! [`Client::launch`] points one process at the proxy; [`Setup`] edits the client's configuration.
//! An edit changes only the lines it has to: comments, order and layout stay. The bytes of the file
//! before are stored, so that [`Undo`] restores them.

#![forbid(unsafe_code)]

mod addresses;
mod client;
mod environment;
mod files;
mod format;
mod launch;
mod opencode;
mod providers;
mod proxy;
mod record;
mod settings;
mod setup;
mod undo;
mod windows;

#[cfg(test)]
mod tests;

pub use addresses::{Address, AddressSource, one_for_each_api};
pub use client::Client;
pub use environment::Environment;
pub use format::Format;
pub use launch::Launch;
pub use proxy::{Family, Proxy, Scope};
pub use settings::{ConfigFile, Setting};
pub use setup::{FileEdit, Setup, diff};
pub use undo::{Restoration, Undo};
pub use windows::Window;
