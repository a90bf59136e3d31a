//! Connects models from names and configuration.

mod chain;
mod embedder;
mod providers;
mod summary;

pub use chain::ModelChain;
pub use embedder::vector_model;
pub use summary::{SummaryModelChain, configured_summary_model, summary_models};

pub(crate) use providers::configured_prices;
