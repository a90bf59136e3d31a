//! Summaries that ctx writes for a client.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use ctx_core::{Compacted, CompactionTrigger, Counter, Result, SummaryModels};
use ctx_dialect::wire::{Protocol, Request, SummaryRequest, TextAnswer};
use ctx_hosted::HostedSession;
use ctx_layers::compaction::{self, CompactOptions, compact};
use ctx_session::clock;

use super::super::Proxy;
use super::super::attempt::Attempt;
use super::super::client_request::ClientRequest;
use super::super::conversation::Conversation;
use super::quoted::quoted_history;
use super::{SummarisedHistory, owner};

/// Summarises the history that a request has as text.
pub(in crate::proxy) async fn summarise_quoted(
    proxy: &Proxy,
    client_request: &ClientRequest,
    asked: SummaryRequest,
    request: &Request<'_>,
) -> Result<Option<String>> {
    let Some(quoted) = asked.quoted(request) else { return Ok(None) };
    let found = quoted_history(proxy, client_request, &quoted).await;
    let Some((conversation, history)) = found else { return Ok(None) };
    let mut state = conversation.state.lock().await;
    let attempt = Attempt {
        proxy,
        client_request,
        request,
        units: &[],
        ids: Vec::new(),
        may_conflict: false,
    };
    let focus = asked.focus(request);
    let made = attempt.summarise(&conversation, &mut state, Some(&history), focus).await?;
    let Some((text, record)) = made else { return Ok(None) };
    let text = quoted.with_sections(text);
    proxy.client_summaries.add_own(owner(proxy, client_request), history, &text, Some(record));
    Ok(Some(text))
}

/// Remembers a summary of ctx as the client keeps it.
pub(in crate::proxy) async fn remember(
    proxy: &Proxy,
    client_request: &ClientRequest,
    conversation: &Conversation,
    text: &str,
) -> Result<()> {
    let state = conversation.state.lock().await;
    let Some(session) = &state.session else { return Ok(()) };
    let history = SummarisedHistory::whole(proxy, client_request, session)?;
    proxy.client_summaries.add_own(owner(proxy, client_request), history, text, None);
    Ok(())
}

/// Summarises a history of a session for its client.
pub(in crate::proxy) async fn summarise(
    session: &HostedSession,
    history: &SummarisedHistory,
    models: Option<SummaryModels>,
    focus: Option<String>,
) -> Result<Option<Compacted>> {
    let history = history.to_summarise(&HashSet::new())?;
    let config = compaction::Config::resolve(&session.resolved.config)?.for_whole_history();
    let options = CompactOptions::new(CompactionTrigger::Manual, clock::now());
    let options = CompactOptions { force: true, models, focus, ..options };
    Ok(compact(history, Arc::new(config), options).await?.result)
}

/// Returns the answer of ctx to a request for a summary.
pub(in crate::proxy) fn answer(
    client_request: &ClientRequest,
    body: &str,
    text: &str,
    is_compaction: bool,
    tokens: u64,
) -> Response {
    let route = &client_request.route;
    let request = Request::parse(route, body).ok();
    let streams = request.as_ref().is_some_and(|request| request.streams);
    let answer = TextAnswer {
        id: &uuid::Uuid::new_v4().simple().to_string(),
        model: request.as_ref().and_then(|request| request.model.as_deref()).unwrap_or_default(),
        created_at: clock::now().0 / 1_000,
        text,
        is_compaction,
        input_tokens: tokens,
        output_tokens: Counter::default().text(text).get(),
    };
    // Without `alt=sse`, Gemini's stream is a list.
    let is_list = streams
        && route.protocol == Protocol::Gemini
        && !client_request.query.as_deref().is_some_and(|query| query.contains("alt=sse"));
    let body = match is_list {
        true => format!("[{}]", answer.body(route, false)),
        false => answer.body(route, streams),
    };
    let kind = match streams && !is_list {
        true if route.is_ollama => "application/x-ndjson",
        true => "text/event-stream",
        false => "application/json",
    };
    ([(CONTENT_TYPE, kind)], body).into_response()
}
