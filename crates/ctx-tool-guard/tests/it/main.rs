//! The guard over hand-built views.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod aggregate;
mod hook;
mod offload;
mod properties;
mod session;
mod single;

/// The guard's settings under a profile.
fn config_of(profile: &str) -> ctx_tool_guard::Config {
    ctx_config::Config::for_profile(profile.parse().unwrap()).section().unwrap()
}
