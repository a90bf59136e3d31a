//! Extracts facts by a model, with a deadline and a budget. Answers are verified.

mod answer;
mod ask;
mod grounds;
mod prompt;
mod read;

pub use ask::ModelExtractor;
