//! Queries the server for an unknown window.

use std::time::Duration;

use ctx_core::Tokens;
use ctx_model::{Method, Request};
use serde_json::Value;

use super::Proxy;
use super::client_request::ClientRequest;

/// The queried paths: the list of models for OpenAI clients (vLLM, OpenRouter), LM Studio's own
/// list, the models loaded in Ollama, the properties of llama.cpp.
const PATHS: [&str; 4] = ["/v1/models", "/api/v0/models", "/api/ps", "/props"];

/// The fields with the window of a listed model. The maximum it could be loaded with is ignored.
const FIELDS: [&str; 3] = ["max_model_len", "loaded_context_length", "context_length"];

/// Timeout for all queries together: a client is waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// Queries the server of a request. The public APIs do not report windows, and are not queried.
pub(super) async fn query_window(
    proxy: &Proxy,
    client_request: &ClientRequest,
    model: &str,
) -> Option<Tokens> {
    let upstreams = &proxy.settings.upstreams;
    if upstreams.is_public(client_request.family) {
        return None;
    }
    let all = async {
        for path in PATHS {
            let url = upstreams.url(client_request.family, path);
            let (method, headers) = (Method::GET, client_request.headers.clone());
            let request = Request { method, url, headers, body: Default::default() };
            let Ok(mut answer) = proxy.client.send(request).await else { continue };
            let body = answer.body.read_up_to(8 << 20).await.unwrap_or_default();
            let window =
                serde_json::from_slice(&body).ok().and_then(|body| window_in(&body, model));
            if window.is_some() {
                return window;
            }
        }
        None
    };
    tokio::time::timeout(PATIENCE, all).await.ok().flatten()
}

fn window_in(body: &Value, model: &str) -> Option<Tokens> {
    let is_it =
        |name: &Value| name.as_str().is_some_and(|n| n.trim_end_matches(":latest") == model);
    let mut listed = ["data", "models"].iter().filter_map(|list| body[list].as_array()).flatten();
    let row = listed.find(|row| is_it(&row["id"]) || is_it(&row["name"]));
    let tokens = row.and_then(|row| FIELDS.iter().find_map(|field| row[field].as_u64()));
    let tokens = tokens.or_else(|| body.pointer("/default_generation_settings/n_ctx")?.as_u64());
    tokens.filter(|tokens| *tokens > 0).map(Tokens::saturating_from)
}
