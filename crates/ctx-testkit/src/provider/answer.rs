//! Turns a request and a step into the bytes of a response.

use ctx_core::{Chars, Tokens, Usage};
use serde_json::{Value, json};

use super::api::{Api, embeddings};
use super::builder::Scenario;
use super::delivery::Events;
use super::failure::{Failure, Sizes, worded};
use super::prompt::{Prompt, tokens_of};
use super::request::Request;
use super::script::{Answer, Reply, Report};
use super::speech::Speech;
use super::step::Step;
use super::strict::{Fault, Strict};
use crate::faithful_summary;

/// Default maximum length of an answer, in tokens.
const ANSWER_TOKENS: u64 = 4_096;

/// A response before it is delivered.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) events: Events,
    /// The usage of the answer; empty without an answer of a model.
    pub(super) usage: Usage,
}

/// The settings that affect answers.
impl Scenario {
    /// Returns the refusal of a prompt that exceeds the model's window.
    pub(super) fn overflow(&self, request: &Request) -> Option<String> {
        let sizes = self.sizes(request);
        let full = sizes.window > 0 && sizes.prompt.saturating_add(sizes.answer) > sizes.window;
        let is_long = self.limit_chars.is_some_and(|most| request.prompt.chars > most);
        (full || is_long).then(|| {
            let Sizes { prompt, answer, window } = sizes;
            let chars = request.prompt.chars;
            format!(
                "too long: {chars} characters, {prompt} tokens and {answer} for the answer; the \
                 window is {window}, the limit {} characters",
                self.limit_chars.unwrap_or(0)
            )
        })
    }

    fn sizes(&self, request: &Request) -> Sizes {
        Sizes {
            prompt: request.prompt.tokens(),
            // Gemini's window limits the prompt only.
            answer: match request.api {
                Some(Api::Gemini) => 0,
                _ => request.max_tokens().unwrap_or(0),
            },
            window: self.window.map_or(0, Tokens::get),
        }
    }

    /// Returns the response of a step to a request.
    pub(super) fn respond(
        &self,
        request: &Request,
        api: Api,
        step: &Step,
        strict: Option<&Strict>,
    ) -> Response {
        let answer = match &step.reply {
            Reply::Error(failure) => return self.fail(request, api, failure, step),
            Reply::Raw(raw) => {
                let body = Events::whole(raw.body.clone());
                return response(raw.status, raw.headers.clone(), body);
            }
            Reply::Garbage => return response(200, Vec::new(), Events::default()),
            _ if !api.is_completion() => return self.plain(request, api),
            Reply::Summary => {
                let prompt = request.prompt.last_user();
                text_answer(faithful_summary(prompt, longest(request)))
            }
            Reply::Text(text) => text_answer(text.clone()),
            Reply::Answer(answer) => (**answer).clone(),
        };
        let report = answer.usage;
        let speech = self.speech(request, answer);
        let spent = Usage { output: tokens_of(speech.chars()).max(1), ..request.usage };
        let usage = match report {
            Report::Computed => Some(spent),
            Report::Given(usage) => Some(usage),
            Report::Nothing => None,
        };
        let mut speech = Speech { usage, ..speech };
        if let Some(strict) = strict {
            strict.seal(api, &mut speech);
        }
        let events = match request.stream() {
            true => speech.stream(api, step.crlf),
            false => speech.whole(api),
        };
        let headers = if request.stream() { stream_headers(request, api) } else { Vec::new() };
        Response { usage: usage.unwrap_or_default(), ..response(200, headers, events) }
    }

    /// Returns the answer of the emulated server (`data/windows.json`) at that path, which contains
    /// only the window.
    pub(super) fn report_window(&self, request: &Request) -> Option<Response> {
        let server = self.server.as_deref().filter(|_| request.method == "GET")?;
        let rows: Value = serde_json::from_str(include_str!("../../data/windows.json")).ok()?;
        let is_it = |row: &&Value| row["server"] == server && row["path"] == *request.path;
        let Some(row) = rows.as_array()?.iter().find(is_it) else {
            return Some(not_found(request));
        };
        let window = self.window.unwrap_or_default().to_string();
        let body = row["body"].to_string().replace("\"WINDOW\"", &window);
        Some(json_response(200, body.replace("MODEL", self.models.first()?)))
    }

    /// Answers requests that are not for a model.
    pub(super) fn plain(&self, request: &Request, api: Api) -> Response {
        let body = match api {
            Api::Models => self.listed_models(),
            Api::CountTokens => json!({ "input_tokens": request.prompt.tokens() }),
            Api::GeminiCount => json!({ "totalTokens": counted(request) }),
            _ => self.embed(request, api),
        };
        json_response(200, body.to_string())
    }

    fn listed_models(&self) -> Value {
        let window = self.window.map(Tokens::get);
        let models = self.models.iter().map(|id| {
            json!({
                "id": id, "object": "model", "created": super::CREATED, "owned_by": "fake",
                "type": "model", "display_name": id, "created_at": "2026-01-05T08:00:00Z",
                "context_length": window, "max_model_len": window,
            })
        });
        let data: Vec<_> = models.collect();
        let google = self.models.iter().map(|id| {
            json!({
                "name": format!("models/{id}"), "displayName": id, "inputTokenLimit": window,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            })
        });
        let google: Vec<_> = google.collect();
        json!({
            "object": "list", "data": data, "has_more": false, "first_id": null, "last_id": null,
            "models": google,
        })
    }

    fn embed(&self, request: &Request, api: Api) -> Value {
        let inputs = embeddings::inputs(&request.json);
        let chars = inputs.iter().map(|text| text.chars().count() as u64).sum();
        let asked = request.json.get("dimensions").and_then(Value::as_u64);
        let most = |n| usize::try_from(n).unwrap_or(usize::MAX).min(16_384);
        let dimensions = asked.map_or(self.dimensions, most);
        let vectors: Vec<_> =
            inputs.iter().map(|text| embeddings::embedding(text, dimensions)).collect();
        match api.is_ollama() {
            true => embeddings::ollama(&request.json, &vectors, chars),
            false => embeddings::openai(&request.json, &vectors, chars),
        }
    }

    fn fail(&self, request: &Request, api: Api, failure: &Failure, step: &Step) -> Response {
        let words = failure.words.or(self.words);
        let failure = Failure { words, ..failure.clone() };
        let mut sizes = self.sizes(request);
        if sizes.window == 0 {
            // Without a window, the numbers must still show that the prompt is too long.
            sizes.window = sizes.prompt.saturating_sub(1);
        }
        let worded = worded(&failure, api, request.model(), sizes);
        let after = failure.after_events.filter(|_| request.stream() && api.is_completion());
        if let Some(after) = after {
            let error: Value = serde_json::from_str(&worded.body).unwrap_or_default();
            let words = faithful_summary(request.prompt.last_user(), longest(request));
            let speech = self.speech(request, text_answer(words));
            let events = speech.failing(api, &error, after, step.crlf);
            return response(200, stream_headers(request, api), events);
        }
        let mut headers = failure.headers();
        headers.push(header("content-type", worded.content_type));
        response(worded.status, headers, Events::whole(listed(request, worded.body)))
    }

    fn speech(&self, request: &Request, answer: Answer) -> Speech {
        let asked = request.json.pointer("/stream_options/include_usage");
        let included = request.json.get("include").and_then(Value::as_array);
        let sealed =
            included.is_some_and(|all| all.contains(&json!("reasoning.encrypted_content")));
        Speech {
            sealed,
            is_list: request.wants_list(),
            include_usage: asked.and_then(Value::as_bool).unwrap_or(false),
            ..Speech::new(request.number, request.model(), answer)
        }
    }
}

/// Answers an unknown path.
pub(super) fn not_found(request: &Request) -> Response {
    let message = format!("Invalid URL ({} {})", request.method, request.path);
    json_response(404, Fault::new(message).body(Api::Chat).to_string())
}

/// Answers a body that is not JSON.
pub(super) fn not_json(api: Api) -> Response {
    let message = match api.is_google() {
        true => "Invalid JSON payload received.",
        false => "We could not parse the JSON body of your request.",
    };
    json_response(400, Fault::new(message).body(api).to_string())
}

/// Returns the refusal of a strict provider.
pub(super) fn refused(request: &Request, api: Api, fault: &Fault) -> Response {
    json_response(fault.status, listed(request, fault.body(api).to_string()))
}

fn text_answer(text: String) -> Answer {
    Answer { text, ..Answer::default() }
}

/// Returns the maximum characters of the answer.
fn longest(request: &Request) -> Chars {
    let tokens = request.max_tokens().unwrap_or(ANSWER_TOKENS).min(1 << 24);
    Chars(u32::try_from(tokens.saturating_mul(4)).unwrap_or(u32::MAX))
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A count request may contain a whole request.
fn counted(request: &Request) -> u64 {
    match request.json.get("generateContentRequest") {
        Some(inner) => Prompt::of(inner).tokens(),
        None => request.prompt.tokens(),
    }
}

/// If a list was requested, an error is an element of a list.
fn listed(request: &Request, body: String) -> String {
    if request.wants_list() { format!("[{body}]") } else { body }
}

fn stream_headers(request: &Request, api: Api) -> Vec<(String, String)> {
    match api {
        _ if api.is_ollama() => vec![header("content-type", "application/x-ndjson")],
        _ if request.wants_list() => vec![header("content-type", "application/json")],
        _ => {
            vec![header("content-type", "text/event-stream"), header("cache-control", "no-cache")]
        }
    }
}

fn json_response(status: u16, body: String) -> Response {
    response(status, Vec::new(), Events::whole(body))
}

fn response(status: u16, mut headers: Vec<(String, String)>, events: Events) -> Response {
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        headers.push(header("content-type", "application/json"));
    }
    Response { status, headers, events, usage: Usage::default() }
}
