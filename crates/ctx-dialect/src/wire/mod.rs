//! Requests to model providers, taken apart and put together again, and answers looked at as they
//! pass: what a proxy needs that changes the history of a conversation and nothing else.
//!
//! [`route()`] tells from a request's line which API it is for. [`Request::take`] finds the history
//! in the body and cuts it into [`Unit`]s, each a piece of the body as it came. [`Request::put`]
//! gives the body with another history: what is told goes out byte for byte, what is new is written
//! in the API's own form, and all that is not history stays as it was, fields that nobody here has
//! heard of included. [`Watch`] reads what comes back, without changing it.
//!
//! ```
//! use ctx_core::{Message, Role};
//! use ctx_dialect::wire::{Out, Request, route};
//!
//! # fn main() -> ctx_core::Result<()> {
//! let route = route("POST", "/v1/chat/completions").expect("a path that is known");
//! let body = r#"{"model":"m", "x": 1.50, "messages":[{"role":"user","content":"a"}, {"role":"user","content":"b"}]}"#;
//! let request = Request::take(&route, body)?;
//! assert_eq!(request.units[1].read().plain_text(), "b");
//!
//! // All told: the very same bytes.
//! assert_eq!(request.put(&[Out::Told(0), Out::Told(1)], None)?, body);
//!
//! let summary = Message::text(Role::CompactionSummary, "They said a.");
//! let out = request.put(&[Out::Written { message: &summary, of: None }, Out::Told(1)], None)?;
//! assert!(out.starts_with(r#"{"model":"m", "x": 1.50, "messages":[{"role":"user""#));
//! assert!(out.ends_with(r#"</summary>"},{"role":"user","content":"b"}]}"#));
//! # Ok(())
//! # }
//! ```

mod apart;
mod error;
mod history;
mod join;
mod pair;
mod peek;
mod put;
mod rewrite;
mod route;
mod system;
mod take;
mod unit;
mod watch;

pub use error::error_body;
pub use put::Out;
pub use route::{Protocol, Route, route};
pub use take::Request;
pub use unit::Unit;
pub use watch::{Failure, Seen, Watch};
