//! The window of a model that nobody here knows: its server may tell it.

use std::time::Duration;

use ctx_core::Tokens;
use ctx_model::{Method, Request};
use serde_json::Value;

use super::Proxy;
use super::asked::Asked;

/// Where it is told: the list for OpenAI's clients (vLLM, OpenRouter), LM Studio's own list, the models
/// that Ollama has loaded, the properties of llama.cpp.
const PATHS: [&str; 4] = ["/v1/models", "/api/v0/models", "/api/ps", "/props"];

/// The fields of a listed model that tell it; what it could be loaded with is none of them.
const FIELDS: [&str; 3] = ["max_model_len", "loaded_context_length", "context_length"];

/// So long all of it may take: a client waits for its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the server that a request is for. The public APIs do not tell it, and are not asked.
pub(super) async fn ask(proxy: &Proxy, asked: &Asked, model: &str) -> Option<Tokens> {
    let upstreams = &proxy.settings.upstreams;
    if upstreams.is_public(asked.family) {
        return None;
    }
    let all = async {
        for path in PATHS {
            let url = upstreams.url(asked.family, path);
            let (method, headers) = (Method::GET, asked.headers.clone());
            let request = Request { method, url, headers, body: Default::default() };
            let Ok(mut answer) = proxy.client.send(request).await else { continue };
            let body = answer.body.read_up_to(8 << 20).await.unwrap_or_default();
            let told = serde_json::from_slice(&body).ok().and_then(|body| window(&body, model));
            if told.is_some() {
                return told;
            }
        }
        None
    };
    tokio::time::timeout(PATIENCE, all).await.ok().flatten()
}

fn window(body: &Value, model: &str) -> Option<Tokens> {
    let is_it =
        |name: &Value| name.as_str().is_some_and(|n| n.trim_end_matches(":latest") == model);
    let mut listed = ["data", "models"].iter().filter_map(|list| body[list].as_array()).flatten();
    let row = listed.find(|row| is_it(&row["id"]) || is_it(&row["name"]));
    let told = row.and_then(|row| FIELDS.iter().find_map(|field| row[field].as_u64()));
    let told = told.or_else(|| body.pointer("/default_generation_settings/n_ctx")?.as_u64());
    told.filter(|tokens| *tokens > 0).map(Tokens::saturating_from)
}
