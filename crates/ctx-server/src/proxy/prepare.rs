//! Converts a client's body to the provider's.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::json::Object;
use ctx_dialect::wire::{
    Protocol, Request, SummaryRequest, has_context_edits, previous_response, takes_tools,
    with_context_edits, with_previous_response, with_tools,
};
use ctx_hosted::{AssembledRequest, answers_unknown_calls};
use ctx_model::Overflow;
use ctx_trace::Record;
use memchr::memmem;
use serde::de::IgnoredAny;

use super::Proxy;
use super::attempt::{AssembledAttempt, Attempt};
use super::cache_break::CachedRequest;
use super::client_compaction::{WholeBody, has_reference};
use super::client_request::ClientRequest;
use super::client_summaries::{put_back, recognised};
use super::config::RetrievalBy;
use super::conversation::Conversation;
use super::conversations::ConversationMatch;
use super::fingerprint::Fingerprint;
use super::objects::{MOST_OBJECTS, has_more_objects};
use super::provider_compaction::CompactedOriginals;
use super::retrieval::{self, MarkedHistory};
use super::stored_responses::{StoredRequest, WholeHistory, refers};
use super::units::RequestUnit;

/// How often a request is assembled again because another replica has cut its conversation meanwhile.
const MOST_CONFLICTS: usize = 3;

/// A prepared request.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) body: Bytes,
    /// Its description; `None` if it passes unchanged.
    pub(super) context: Option<RequestContext>,
    /// The content of the compaction item, or the summary, with which ctx answers.
    pub(super) compacted: Option<String>,
    /// Whether its history is the client's.
    is_unchanged: bool,
    /// Whether it has the tools of ctx.
    pub(super) retrieves: bool,
    /// The client's request, if the provider stores its answer.
    pub(super) stored: Option<StoredRequest>,
    /// The edits of `context_management` that ctx made, if it makes them.
    pub(super) applied_edits: Option<Vec<String>>,
}

/// The description of a request.
#[derive(Debug)]
pub(super) struct RequestContext {
    pub(super) conversation: Arc<Conversation>,
    pub(super) record: Record,
    /// The estimated tokens, uncorrected.
    pub(super) estimated: u64,
    /// The request, to detect cache breaks in the next one.
    pub(super) sent: Arc<CachedRequest>,
    /// The id of its last message.
    pub(super) last: String,
    /// What a compaction of the provider in it covers.
    pub(super) originals: Option<CompactedOriginals>,
    /// The client's request for a summary, if it is one.
    pub(super) asked: Option<SummaryRequest>,
}

/// What a request is prepared for.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// To be sent.
    Send,
    /// To be sent again.
    Retry(Retry),
    /// To be compacted and answered by ctx.
    Compact,
    /// To be summarised as a whole, with this focus, and answered by ctx.
    Summarise(Option<String>),
}

impl Purpose {
    pub(super) fn retry(&self) -> Option<Retry> {
        match self {
            Self::Retry(retry) => Some(*retry),
            Self::Send | Self::Compact | Self::Summarise(_) => None,
        }
    }
}

/// A retry after the provider refused the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    /// The number of refusals so far.
    pub(super) attempt: u32,
    /// The maximum number of retries.
    pub(super) most: u32,
    pub(super) overflow: Overflow,
}

impl Prepared {
    fn untouched(body: Bytes) -> Self {
        Self {
            body,
            context: None,
            compacted: None,
            is_unchanged: true,
            retrieves: false,
            stored: None,
            applied_edits: None,
        }
    }

    /// Whether the request can be reduced after a refusal.
    pub(super) fn can_be_smaller(&self) -> bool {
        self.context.is_some()
    }

    /// Returns the model's window; 0 if unknown.
    pub(super) fn window(&self) -> u64 {
        self.context.as_ref().map_or(0, |context| context.record.window.get())
    }
}

/// Makes a request fit.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] for an invalid body of that API. Also if no history would fit: the
/// window is too small, or the parts that cannot be cut are too large. Nothing else is an error: a
/// failing engine is bypassed.
pub(super) async fn prepare(
    proxy: &Proxy,
    client_request: &ClientRequest,
    body: Bytes,
    purpose: Purpose,
) -> Result<Prepared> {
    if client_request.route.is_bedrock
        && let Some(why) = fixed(client_request, &body)
    {
        proxy.warn(why);
        return Ok(Prepared::untouched(body));
    }
    let restored = put_back(proxy, client_request, &body).await;
    // Text may have been added to the one that asks.
    let asked = restored.as_ref().map(|_| recognised(proxy, client_request, &body));
    let (body, audited) = restored.unwrap_or((body, None));
    let mut prepared = prepare_restored(proxy, client_request, body, purpose).await?;
    if let (Some(context), Some(asked)) = (&mut prepared.context, asked) {
        context.asked = asked;
    }
    if let (Some(context), Some(mut audited)) = (&mut prepared.context, audited) {
        audited.request = context.record.number;
        context.record.compaction.get_or_insert(audited);
    }
    edit_context(proxy, client_request, &mut prepared)?;
    Ok(prepared)
}

/// Returns why a request of Bedrock cannot be changed.
fn fixed(client_request: &ClientRequest, body: &[u8]) -> Option<&'static str> {
    if client_request.is_signed() {
        return Some(
            "requests signed with a key of AWS pass unchanged, and Bedrock may refuse them, because \
             the signature covers the body and the host: let the client use a Bedrock API key \
             (AWS_BEARER_TOKEN_BEDROCK, sent as `authorization: Bearer`)",
        );
    }
    let is_other = client_request.protocol() == Protocol::Messages
        && memmem::find(body, b"\"anthropic_version\"").is_none();
    is_other.then_some(
        "requests to invoke a model of Bedrock that is not Anthropic's pass unchanged: \
         let the client use `converse`",
    )
}

/// Makes the edits of `context_management` for a provider that refuses it.
fn edit_context(
    proxy: &Proxy,
    client_request: &ClientRequest,
    prepared: &mut Prepared,
) -> Result<()> {
    if !proxy.refuses_edits.load(Ordering::Relaxed) {
        return Ok(());
    }
    let text = utf8(&prepared.body)?;
    if !has_context_edits(client_request.protocol(), text) {
        return Ok(());
    }
    let edited = with_context_edits(&Request::parse(&client_request.route, text)?)?;
    (prepared.body, prepared.applied_edits) = (Bytes::from(edited.body), edited.applied);
    // The provider counts less than ctx.
    if let Some(context) = &mut prepared.context {
        context.estimated = 0;
    }
    Ok(())
}

/// Makes a request fit that may have compaction items of ctx.
async fn prepare_restored(
    proxy: &Proxy,
    client_request: &ClientRequest,
    body: Bytes,
    purpose: Purpose,
) -> Result<Prepared> {
    let compacts = matches!(purpose, Purpose::Compact);
    if !compacts && !has_reference(&client_request.route, &body) {
        return prepare_stored(proxy, client_request, body, purpose).await;
    }
    let body = if compacts { with_stored(proxy, client_request, body)? } else { body };
    let owner = client_request.owner();
    let protocol = client_request.protocol();
    let whole = WholeBody::of(&proxy.originals, protocol, utf8(&body)?, &owner, compacts);
    if let Some(why) = whole.lost {
        proxy.warn(&format!("a part of a history is lost: {why}; the model is told so"));
    }
    let restored = match whole.text {
        Cow::Borrowed(_) => body.clone(),
        Cow::Owned(text) => Bytes::from(text),
    };
    let mut prepared = match prepare_whole(proxy, client_request, restored, purpose).await {
        // The client cannot go on without an item, which can also replace the whole history.
        Err(error) if compacts && error.kind() != ErrorKind::Capability => {
            proxy.warn(&format!("a history is not compacted for its client: {error}"));
            Prepared::untouched(body.clone())
        }
        prepared => prepared?,
    };
    if compacts {
        let mut saved = whole.to_save.ok_or_else(uncompacted)?;
        saved.session = prepared.context.as_ref().map(|context| context.conversation.id.clone());
        prepared.compacted = Some(proxy.originals.save(&saved, &owner)?);
    }
    Ok(prepared)
}

/// Returns the body with the history that it refers to, if ctx has seen it.
pub(super) fn with_stored(
    proxy: &Proxy,
    client_request: &ClientRequest,
    body: Bytes,
) -> Result<Bytes> {
    let (route, text) = (&client_request.route, utf8(&body)?);
    if !refers(route, &body) {
        return Ok(body);
    }
    let stored = proxy.responses.request(route, text, &client_request.key());
    let whole = stored.and_then(|request| proxy.responses.whole(&request, text));
    Ok(whole.map_or_else(|| body.clone(), |whole| Bytes::from(whole.body)))
}

/// Makes a request fit whose history the provider may store.
async fn prepare_stored(
    proxy: &Proxy,
    client_request: &ClientRequest,
    body: Bytes,
    purpose: Purpose,
) -> Result<Prepared> {
    let route = &client_request.route;
    if route.protocol != Protocol::Responses {
        return prepare_whole(proxy, client_request, body, purpose).await;
    }
    let text = utf8(&body)?;
    let stored = Some(route).filter(|route| !route.is_compaction);
    let mut stored =
        stored.and_then(|route| proxy.responses.request(route, text, &client_request.key()));
    let whole = stored.as_ref().filter(|_| refers(route, &body));
    let whole = whole.and_then(|request| proxy.responses.whole(request, text));
    let mut prepared = match whole {
        None => prepare_whole(proxy, client_request, body, purpose).await?,
        Some(WholeHistory { body: whole, previous }) => {
            let mut prepared =
                prepare_whole(proxy, client_request, Bytes::from(whole), purpose).await?;
            // The provider has the history as it is. Whether it counts that is not known.
            let is_attached = stored.as_ref().is_some_and(StoredRequest::is_attached);
            if prepared.is_unchanged && is_attached && !proxy.speaks_chat.load(Ordering::Relaxed) {
                let known = previous_response(&Object::parse_prefix(text).0);
                let other = previous.filter(|id| known.as_deref() != Some(id));
                let other = other.and_then(|id| with_previous_response(text, &id));
                prepared.body = other.map_or(body, Bytes::from);
                prepared.retrieves = false;
                if let Some(context) = &mut prepared.context {
                    context.estimated = 0;
                }
            } else if let Some(stored) = &mut stored {
                stored.detach();
            }
            prepared
        }
    };
    prepared.stored = stored;
    Ok(prepared)
}

fn utf8(body: &Bytes) -> Result<&str> {
    std::str::from_utf8(body).map_err(|error| {
        Error::new(ErrorKind::InvalidInput, "the request body is not UTF-8")
            .with("at", error.valid_up_to())
            .hint("send JSON in UTF-8")
    })
}

/// Makes a request with its whole history fit.
async fn prepare_whole(
    proxy: &Proxy,
    client_request: &ClientRequest,
    body: Bytes,
    purpose: Purpose,
) -> Result<Prepared> {
    let text = utf8(&body)?;
    if has_more_objects(text, MOST_OBJECTS) {
        proxy.warn(
            "a request has more messages and tool calls than any model can read: \
             it passes unchanged",
        );
        return Ok(Prepared::untouched(body));
    }
    let request = match Request::parse(&client_request.route, text) {
        Ok(request) => request,
        // The provider reports missing and duplicate fields itself.
        Err(_) if serde_json::from_str::<IgnoredAny>(text).is_ok() => {
            return Ok(Prepared::untouched(body));
        }
        Err(error) => return Err(error),
    };
    if request.is_continued && client_request.is_tool_runner() {
        return Err(unthreaded());
    }
    let units = RequestUnit::all(&request);
    if matches!(purpose, Purpose::Compact) && request.is_continued {
        return Err(uncompacted());
    }
    if request.is_continued || answers_unknown_calls(units.len(), |at| Some(units[at].message())) {
        proxy.warn(
            "a request continues a history stored at the provider (previous_response_id, \
             conversation, thread, item_reference, cached content, or results of calls that it \
             does not contain): it passes unchanged; to have it cut, let the client send its \
             history",
        );
        return Ok(Prepared::untouched(body));
    }
    if request.units.is_empty() {
        return Ok(Prepared::untouched(body));
    }
    let prepared = assemble(proxy, client_request, &request, &units, &body, purpose).await?;
    Ok(prepared.unwrap_or_else(|| Prepared::untouched(body.clone())))
}

/// Assembles the request of a conversation; `None` if it passes unchanged.
async fn assemble(
    proxy: &Proxy,
    client_request: &ClientRequest,
    request: &Request<'_>,
    units: &[RequestUnit<'_>],
    body: &Bytes,
    purpose: Purpose,
) -> Result<Option<Prepared>> {
    let (conversation, result) =
        in_conversation(proxy, client_request, request, units, body.len(), purpose).await;
    proxy.conversations.bound(&conversation);
    proxy.metrics.conversations.set(i64::try_from(proxy.conversations.count()).unwrap_or(i64::MAX));
    let Some(AssembledAttempt { assembled, record, estimated, sent, summary }) = result? else {
        return Ok(None);
    };
    let last = assembled.outgoing.last().map(|out| out.id.to_string()).unwrap_or_default();
    let (originals, asked) = (None, SummaryRequest::of(request));
    let mut context =
        RequestContext { conversation, record, estimated, sent, last, originals, asked };
    if summary.is_some() {
        let untouched = Prepared::untouched(body.clone());
        return Ok(Some(Prepared { context: Some(context), compacted: summary, ..untouched }));
    }
    let conversation = &context.conversation;
    let by = proxy.settings.config.retrieval;
    let may_retrieve = by != RetrievalBy::Off
        && conversation.may_retrieve(by, &context.record)
        && !client_request.route.is_ollama
        && !client_request.route.is_bedrock
        && takes_tools(request, retrieval::NAMES);
    let originals =
        may_retrieve.then(|| CompactedOriginals::of(proxy, client_request, request)).flatten();
    let retrieves =
        may_retrieve && (originals.is_some() || retrieval::is_wanted(by, &assembled, units.len()));
    conversation.set_retrieves(retrieves);
    context.originals = originals;
    let prepared = with_retrieval(request, units, body, &assembled, context, retrieves)?;
    if prepared.is_none() {
        proxy.warn("no message of a request would remain: it passes unchanged");
    }
    Ok(prepared)
}

/// Finds the conversation of a request, and assembles the request in it. If another replica has cut
/// the conversation meanwhile, it is read again.
async fn in_conversation(
    proxy: &Proxy,
    client_request: &ClientRequest,
    request: &Request<'_>,
    units: &[RequestUnit<'_>],
    bytes: usize,
    purpose: Purpose,
) -> (Arc<Conversation>, Result<Option<AssembledAttempt>>) {
    let fingerprint = Fingerprint::of(
        &proxy.salt,
        client_request.protocol(),
        &client_request.headers,
        client_request.query.as_deref(),
        request.cache_key.as_deref(),
        units,
    );
    let mut left = MOST_CONFLICTS;
    loop {
        if let Err(error) = proxy.conversations.refresh(&fingerprint).await {
            proxy.warn_of("store", &format!("the cuts of other replicas are not known: {error}"));
        }
        let ConversationMatch { conversation, ids } =
            proxy.conversations.find(&fingerprint, units).await;
        RequestUnit::parse_new(units, &ids);
        conversation.set_bytes(bytes);
        let may_conflict = left > 0;
        let attempt = Attempt { proxy, client_request, request, units, ids, may_conflict };
        match attempt.assemble(&conversation, purpose.clone()).await {
            Err(error) if error.kind() == ErrorKind::Conflict && may_conflict => {
                proxy.conversations.forget(&conversation);
                left -= 1;
            }
            result => return (conversation, result),
        }
    }
}

/// Writes the request of a conversation, with the tools that read what was cut if it `retrieves`;
/// `None` if no message would remain.
fn with_retrieval(
    request: &Request<'_>,
    units: &[RequestUnit<'_>],
    body: &Bytes,
    assembled: &AssembledRequest,
    context: RequestContext,
    retrieves: bool,
) -> Result<Option<Prepared>> {
    let marked = match retrieves {
        true => MarkedHistory::of(&context, assembled, units),
        false => MarkedHistory::default(),
    };
    let out = marked.units(assembled);
    if out.is_empty() {
        return Ok(None);
    }
    let put = request.with_history(&out, assembled.addition.as_deref())?;
    let tools =
        retrieves.then(|| with_tools(request.protocol, &put, &retrieval::tools())).flatten();
    let retrieves = tools.is_some();
    let is_unchanged = assembled.addition.is_none() && retrieval::is_client_history(&out, units);
    let body = match (tools, put) {
        (Some(text), _) | (None, Cow::Owned(text)) => Bytes::from(text),
        (None, Cow::Borrowed(_)) => body.clone(),
    };
    let context = Some(context);
    Ok(Some(Prepared { context, is_unchanged, retrieves, ..Prepared::untouched(body) }))
}

/// Returns the error for a compaction of a history that is not in the request.
fn uncompacted() -> Error {
    Error::new(ErrorKind::Capability, "ctx cannot compact a history that it does not see")
        .hint("let the client send its whole history instead of a reference to it")
}

/// Returns the error that makes the client send its whole history instead of continuing a thread.
fn unthreaded() -> Error {
    Error::new(ErrorKind::InvalidInput, "message threads are not supported by ctx")
        .with("error_code", "thread_unsupported_request")
        .hint("send the full conversation without `thread`")
}
