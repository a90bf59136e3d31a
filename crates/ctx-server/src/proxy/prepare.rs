//! From the body that came to the body that goes out.

use std::sync::Arc;

use bytes::Bytes;
use ctx_core::{Error, ErrorKind, Result, Role};
use ctx_dialect::wire::{Out, Request};
use ctx_model::Overflow;
use serde::de::IgnoredAny;

use super::Proxy;
use super::asked::Asked;
use super::cached::Cached;
use super::conversation::Conversation;
use super::conversations::Found;
use super::group::Group;
use super::sitting::{Fitted, Sitting};
use super::told::{self, Told};
use crate::hosted::Made;
use crate::trace::Record;

/// What is made of more takes seconds and hundreds of megabytes. A tool call is two objects.
const MOST_OBJECTS: usize = 200_000;

/// A request as it goes out.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) body: Bytes,
    /// What there is to tell of it; nothing where it passes untouched.
    pub(super) told: Option<About>,
}

/// What there is to tell of a request.
#[derive(Debug)]
pub(super) struct About {
    pub(super) conversation: Arc<Conversation>,
    pub(super) record: Record,
    /// What it was estimated at, uncorrected.
    pub(super) estimated: u64,
    /// The request, to compare the next one with.
    pub(super) sent: Arc<Cached>,
    /// Whether Codex asks for a compaction of its history, which it takes as an item of that kind only.
    pub(super) wants_compaction: bool,
}

/// The provider refused what went out before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smaller {
    /// How often it did, this time included.
    pub(super) attempt: u32,
    /// How often it will be tried.
    pub(super) most: u32,
    pub(super) overflow: Overflow,
}

impl Prepared {
    fn untouched(body: Bytes) -> Self {
        Self { body, told: None }
    }

    /// Whether a refusal can be answered by less.
    pub(super) fn can_be_smaller(&self) -> bool {
        self.told.is_some()
    }

    /// The model's window; 0 where it is not known.
    pub(super) fn window(&self) -> u64 {
        self.told.as_ref().map_or(0, |told| told.record.window.get())
    }
}

/// Makes a request fit.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] for a body that is no request of that API, and where the window or
/// what cannot be cut is such that no history would fit. Nothing else fails: an engine that does is
/// done without.
pub(super) async fn prepare(
    proxy: &Proxy,
    asked: &Asked,
    body: Bytes,
    smaller: Option<Smaller>,
) -> Result<Prepared> {
    let text = std::str::from_utf8(&body).map_err(|error| {
        Error::new(ErrorKind::InvalidInput, "the body of the request is not UTF-8")
            .with("at", error.valid_up_to())
            .hint("send JSON in UTF-8")
    })?;
    if has_more_objects(text, MOST_OBJECTS) {
        proxy.warn(
            "a request has more messages and tool calls than any model reads: it passes untouched",
        );
        return Ok(Prepared::untouched(body));
    }
    let request = match Request::take(&asked.route, text) {
        Ok(request) => request,
        // What it lacks, or says twice, the provider says in its own words.
        Err(_) if serde_json::from_str::<IgnoredAny>(text).is_ok() => {
            return Ok(Prepared::untouched(body));
        }
        Err(error) => return Err(error),
    };
    if request.is_continued && asked.is_tool_runner() {
        return Err(unthreaded());
    }
    let told = Told::all(&request);
    if request.is_continued || told::answers_unknown_calls(&told) {
        proxy.warn(
            "a request goes on from a history that the provider holds (previous_response_id, \
             conversation, thread, item_reference, cached content, or results of calls that it does \
             not have): it passes untouched; let the client send its history to have it cut",
        );
        return Ok(Prepared::untouched(body));
    }
    if request.units.is_empty() {
        return Ok(Prepared::untouched(body));
    }
    let cache_key = request.cache_key.as_deref();
    let query = asked.query.as_deref();
    let group = Group::of(&proxy.salt, asked.protocol(), &asked.headers, query, cache_key, &told);
    let Found { conversation, ids } = proxy.conversations.find(&group, &told).await;
    Told::read_new(&told, &ids);
    conversation.set_bytes(body.len());
    let sitting = Sitting { proxy, asked, request: &request, told: &told, ids };
    let made = sitting.hold(&conversation, smaller).await;
    proxy.conversations.bound(&conversation);
    proxy.metrics.conversations.set(i64::try_from(proxy.conversations.count()).unwrap_or(i64::MAX));
    let Some(Fitted { made, record, estimated, sent }) = made? else {
        return Ok(Prepared::untouched(body));
    };
    let out = out(&made);
    if out.is_empty() {
        proxy.warn("nothing of a request's history would be left: it passes untouched");
        return Ok(Prepared::untouched(body));
    }
    let put = request.put(&out, made.addition.as_deref())?;
    let body = match put {
        std::borrow::Cow::Borrowed(_) => body.clone(),
        std::borrow::Cow::Owned(text) => Bytes::from(text),
    };
    let wants_compaction = told.last().is_some_and(
        |told| matches!(&told.message().role, Role::Other(kind) if &**kind == "compaction_trigger"),
    );
    let about = About { conversation, record, estimated, sent, wants_compaction };
    Ok(Prepared { body, told: Some(about) })
}

/// What a client is answered that shall send its whole history instead of continuing a thread.
fn unthreaded() -> Error {
    Error::new(ErrorKind::InvalidInput, "message threads do not pass through ctx")
        .with("error_code", "thread_unsupported_request")
        .hint("send the full conversation without `thread`")
}

/// The history as it goes out. A message stands in the history where its unit stands in the body.
fn out(made: &Made) -> Vec<Out<'_>> {
    made.outgoing
        .iter()
        .map(|out| match (out.told, out.place) {
            (Some(at), _) => Out::Told(at),
            (None, of) => Out::Written { message: &out.message, of },
        })
        .collect()
}

/// Whether a text of JSON has more objects than so many, whatever stands in its strings.
fn has_more_objects(json: &str, most: usize) -> bool {
    /// A message with a role and a text takes no less.
    const SMALLEST: usize = 16;
    if json.len() / SMALLEST < most {
        return false;
    }
    let (mut rest, mut objects, mut in_string) = (json.as_bytes(), 0, false);
    loop {
        let next = if in_string { b'\\' } else { b'{' };
        let Some(at) = memchr::memchr2(b'"', next, rest) else { return false };
        let found = rest[at];
        // What is escaped ends no string.
        rest = rest.get(at + 1 + usize::from(found == b'\\')..).unwrap_or_default();
        match found {
            b'"' => in_string = !in_string,
            b'{' => objects += 1,
            _ => {}
        }
        if objects > most {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_outside_of_strings() {
        let list = |one: &str| format!("[{}]", vec![one; 100].join(","));
        let call = r#"{"text":"{\"a{{\\\\", "function":{"name":"}{"}}"#;
        assert!(has_more_objects(&list(call), 199) && !has_more_objects(&list(call), 200));
        for torn in ["", "{", "\"", "\"\\", "{\"a\\\""] {
            let _ = has_more_objects(torn, 0);
        }
    }
}
