//! What is known of models: how large their windows are and what their tokens cost.
//!
//! The [`Catalogue`] is a data file inside the crate, every row with its source and date. It is
//! found by whatever name a transcript or a config file uses:
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

#![forbid(unsafe_code)]

mod catalogue;
mod model;
mod name;

pub use catalogue::Catalogue;
pub use model::{Model, Prices, Usd, Vintage};
