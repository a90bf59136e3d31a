//! `ctx.json5`: strict, and composed of the sections of the linked crates; and profiles, the
//! defaults of the systems that ctx is modelled on.
//!
//! A crate that reads a [`Section`] submits it as a [`ConfigSection`] with `inventory`. The file of
//! the profile in `profiles/` overrides a section's defaults, and the user's file overrides both.

#![forbid(unsafe_code)]

mod config;
mod conversation;
mod document;
mod expected;
mod profile;
mod sections;
mod strict;

pub use config::{AgentConfig, AgentList, Config, ConfigSection, Section, invalid_value};
pub use conversation::ConversationModels;
pub use profile::{Profile, UnknownProfile};
pub use sections::{
    ContextTokens, ModelConfig, ModelCost, Models, PriceList, ProfileKey, ProviderConfig,
    RunningConfig, SecretText, SystemRules, without_password,
};
pub use strict::nearest;

/// For the registration macros of dependent crates.
pub use inventory;
