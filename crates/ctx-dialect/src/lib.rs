//! Converts provider JSON (OpenAI Chat and Responses, Anthropic, Gemini, the AI SDK, pi) to ctx
//! messages and back.
//!
//! Each dialect is a module with a `parse` and a `write` function. Everything is pure: text in,
//! [`ctx_core::Message`] out, and the reverse. Parsing keeps unknown values: unknown blocks become
//! [`ctx_core::Block::Opaque`], unknown roles [`ctx_core::Role::Other`]; only invalid JSON is an
//! error. Writing produces what the provider accepts, which may be less than was read.

#![forbid(unsafe_code)]

pub mod ai_sdk;
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
pub mod sse;
pub mod tools;
pub mod wire;
