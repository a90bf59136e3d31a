//! Splits requests to model providers and reassembles them, and inspects answers as they pass: for
//! a proxy that changes the history of a conversation and nothing else.
//!
//! [`route()`] determines the API from the request line. [`Request::parse`] finds the history in
//! the body and cuts it into [`Unit`]s, each a slice of the body. [`Request::with_history`] returns
//! the body with another history: unchanged units are sent byte for byte, new messages are written
//! in the API's format, and everything else stays the same, including unknown fields. [`Watch`]
//! reads the answer without changing it.
//!
//! ```
//! use ctx_core::{Message, Role};
//! use ctx_dialect::wire::{OutgoingUnit, Request, route};
//!
//! # fn main() -> ctx_core::Result<()> {
//! let route = route("POST", "/v1/chat/completions").expect("a known path");
//! let body = r#"{"model":"m", "x": 1.50, "messages":[{"role":"user","content":"a"}, {"role":"user","content":"b"}]}"#;
//! let request = Request::parse(&route, body)?;
//! assert_eq!(request.units[1].read().plain_text(), "b");
//!
//! // All units unchanged: the same bytes.
//! let (first, second) = (OutgoingUnit::Unchanged(0), OutgoingUnit::Unchanged(1));
//! assert_eq!(request.with_history(&[first, second], None)?, body);
//!
//! let summary = Message::text(Role::CompactionSummary, "They said a.");
//! let summary = OutgoingUnit::Message { message: &summary, of: None };
//! let out = request.with_history(&[summary, second], None)?;
//! assert!(out.starts_with(r#"{"model":"m", "x": 1.50, "messages":[{"role":"user""#));
//! assert!(out.ends_with(r#"</summary>"},{"role":"user","content":"b"}]}"#));
//! # Ok(())
//! # }
//! ```

mod assemble;
mod call_ids;
mod chat_bridge;
mod compaction;
mod context_compaction;
mod context_edits;
mod error;
mod history;
mod intercept;
mod merge;
mod own_tools;
mod peek;
mod request;
mod response_object;
mod result_ids;
mod rewrite;
mod route;
mod summary_request;
mod system;
mod text_answer;
mod unit;
mod watch;

pub use assemble::{OutgoingElement, OutgoingUnit};
pub use chat_bridge::{ChatAnswer, ChatRequest};
pub use compaction::{
    CompactionAnswer, Items, compaction_content, compaction_in, conversation, developer_item,
    is_trigger, previous_response, referenced_item, with_input_items, with_previous_response,
};
pub use context_compaction::{ContextCompaction, context_compaction, with_compaction};
pub use context_edits::{EditedRequest, has_context_edits, with_context_edits};
pub use error::error_body;
pub use intercept::{Intercept, Round};
pub use own_tools::{results, takes_tools, with_elements, with_tools};
pub use request::Request;
pub use result_ids::ResultMatcher;
pub(crate) use rewrite::{list, patched};
pub use route::{Protocol, Route, route};
pub use summary_request::{QuotedHistory, SummaryRequest};
pub use text_answer::TextAnswer;
pub use unit::Unit;
pub use watch::{AnswerState, Failure, Watch, answer_text};
