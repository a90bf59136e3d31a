//! Provider JSON (OpenAI chat and responses, Anthropic, Gemini, pi) to ctx messages and back.
//!
//! One module a dialect, each with a `parse` and a `write`. Everything here is pure: text in,
//! [`ctx_core::Message`] out, and the other way round. Parsing refuses nothing that can be
//! carried: unknown blocks become [`ctx_core::Block::Opaque`], unknown roles
//! [`ctx_core::Role::Other`]; only text that is no JSON is an error. Writing gives what the
//! provider accepts, which may be less than what was read.

#![forbid(unsafe_code)]

pub mod anthropic;
mod block;
pub mod gemini;
pub mod hygiene;
pub mod json;
pub mod openai_chat;
pub mod openai_responses;
pub mod pi;
pub mod ponybunny;
mod shape;
pub mod tools;
pub mod wire;

pub use shape::{as_user_text, split_results};
