//! Windows and prices of known models, and HTTP clients for models.
//!
//! The [`Catalogue`] is a data file embedded in the crate; each row has its source and date. Lookup
//! accepts the names that transcripts and config files use:
//!
//! ```
//! use ctx_core::{Tokens, Usage};
//! use ctx_model::Catalogue;
//!
//! let model = Catalogue::embedded().find("anthropic/claude-opus-4.5-20251101").unwrap();
//! assert_eq!(model.window, Tokens(200_000));
//! let usage = Usage { input: 1_000_000, ..Usage::default() };
//! assert_eq!(model.prices.cost(&usage).to_string(), "$5.00");
//! ```
//!
//! The feature `http` (default) adds, from the bottom up: [`Client`], which sends requests and
//! streams responses; [`Endpoint`], the location and API of a provider; [`HttpModel`], a
//! [`ctx_core::ChatModel`] and [`ctx_core::Summarizer`]; [`HttpEmbedder`], a
//! [`ctx_core::Embedder`]; and [`connect`], which creates models from a name and a configuration.
//! [`overflow`] recognises errors about prompts that are too long, across providers. Keys are given
//! by reference ([`KeyRef`]) and never printed.

#![forbid(unsafe_code)]

mod catalogue;
mod model;
mod name;

#[cfg(feature = "http")]
mod chat;
#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod connect;
#[cfg(feature = "http")]
mod embed;
#[cfg(feature = "http")]
mod endpoint;
#[cfg(feature = "http")]
mod failure;
#[cfg(feature = "http")]
mod key;
#[cfg(feature = "http")]
mod known_providers;
#[cfg(feature = "http")]
mod overflow;
#[cfg(feature = "http")]
mod provider_error;
#[cfg(feature = "http")]
mod timer;

pub use catalogue::Catalogue;
pub use model::{Model, Prices, Usd, Vintage};

#[cfg(feature = "http")]
pub use {
    chat::{HttpModel, ModelFacts, Stop, TextAnswer},
    client::{Body, Client, Request, Response, Timeouts},
    connect::{Provider, ProviderModel, connect, connect_embedder, connect_models},
    embed::{EmbedApi, HttpEmbedder},
    endpoint::{Api, Endpoint},
    key::{KeyRef, Secret},
    overflow::{Overflow, overflow, silent_overflow},
    reqwest::{Method, StatusCode, Url, header},
    timer::TokioTimer,
};
