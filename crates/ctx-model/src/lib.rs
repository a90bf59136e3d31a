//! Models: what is known of them, and how they are called over HTTP.
//!
//! The [`Catalogue`] is a data file inside the crate, windows and prices, every row with its source
//! and date. It is found by whatever name a transcript or a config file uses:
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
//! With the feature `http` (default) there is, from the bottom up: [`Client`], which sends bytes and
//! gives a stream of bytes; [`Endpoint`], where an API is and what it speaks; [`HttpModel`], which
//! converses ([`ctx_core::ChatModel`]) and summarises ([`ctx_core::Summarizer`]), and
//! [`HttpEmbedder`], a [`ctx_core::Embedder`]; and [`connect`], which makes them from a name and a
//! configuration. [`overflow`] recognises, across providers, that a prompt was too long. Keys are
//! given by reference ([`KeyRef`]) and never printed.

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
mod known;
#[cfg(feature = "http")]
mod overflow;
#[cfg(feature = "http")]
mod provider_error;
#[cfg(feature = "http")]
mod sse;
#[cfg(feature = "http")]
mod timer;

pub use catalogue::Catalogue;
pub use model::{Model, Prices, Usd, Vintage};

#[cfg(feature = "http")]
pub use {
    chat::{Answer, HttpModel, ModelFacts, Stop},
    client::{Body, Client, Request, Response, Timeouts},
    connect::{Provider, ProviderModel, connect, connect_embedder, connect_models},
    embed::{EmbedApi, HttpEmbedder},
    endpoint::{Api, Endpoint},
    key::{KeyRef, Secret},
    overflow::{Overflow, overflow, silent_overflow},
    reqwest::{Method, StatusCode, Url, header},
    sse::{SseEvent, SseParser},
    timer::TokioTimer,
};
