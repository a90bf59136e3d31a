//! Facts by a model: asked with a deadline and within a budget, and not believed.

mod answer;
mod ask;
mod grounds;
mod prompt;
mod read;

pub(crate) use ask::Accounts;
pub use ask::ModelExtractor;
