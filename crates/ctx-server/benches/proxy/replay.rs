//! Recorded sessions as requests of a client, while a model writes the summaries.
//!
//! The sessions are those of `$CTX_DATA`; without them, a generated one. Each request has the whole
//! history, as a client sends it that never compacts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ctx_core::Message;
use ctx_dialect::anthropic;
use ctx_model::{Catalogue, Client, Url};
use ctx_session::Transcript;
use ctx_testkit::provider::{FakeProvider, Reply, Request, Step};
use ctx_testkit::recorded;
use serde_json::{Value, json};

use super::{Proxied, ask, long, percentile, unseen};

const WINDOW: u32 = 64_000;
/// A client's window: longer histories are not sent.
const MOST_BYTES: usize = 1_200_000;
/// The time that a model takes to write a summary.
const SLOW: Duration = Duration::from_secs(3);
/// The time between two requests, in which a fast summary is written.
const PAUSE: Duration = Duration::from_millis(30);
const MODEL: &str = "claude-sonnet-4-5";
/// A model without known prices.
const UNPRICED: &str = "unknown";

/// How the sessions are replayed.
struct Arm {
    name: &'static str,
    model: &'static str,
    summary: Duration,
    ratio: f64,
    /// The number of sessions, at most.
    sessions: usize,
}

const ARMS: [Arm; 4] = [
    Arm { name: "summaries take 3 s", model: MODEL, summary: SLOW, ratio: 0.8, sessions: 99 },
    Arm {
        name: "they take no time",
        model: MODEL,
        summary: Duration::ZERO,
        ratio: 0.8,
        sessions: 99,
    },
    Arm {
        name: "the same, applied at the threshold only",
        model: UNPRICED,
        summary: Duration::ZERO,
        ratio: 0.8,
        sessions: 99,
    },
    Arm {
        name: "3 s, not in the background; one session",
        model: MODEL,
        summary: SLOW,
        ratio: 1.0,
        sessions: 1,
    },
];

/// What an arm measured.
#[derive(Default)]
struct Measured {
    added: Vec<Duration>,
    waited: usize,
    compactions: usize,
    usd: f64,
}

/// Replays the sessions, and measures a history that was never seen before.
pub(super) async fn replay() {
    let sessions = sessions();
    println!("replay: {} sessions, window of {WINDOW} tokens", sessions.len());
    println!(
        "| | requests | added, ms: p50 | p99 | max | over 50 ms | waited for a summary | compactions | USD |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for arm in ARMS {
        let mut all = Measured::default();
        for bodies in sessions.iter().rev().take(arm.sessions) {
            all.session(&arm, bodies).await;
        }
        let slow = all.added.iter().filter(|time| time.as_millis() > 50).count();
        let [half, most, max] = [50, 99, 100].map(|of| percentile(&mut all.added, of));
        let Measured { added, waited, compactions, usd } = all;
        println!(
            "| {} | {} | {half:.2} | {most:.2} | {max:.2} | {slow} | {waited} | {compactions} | {usd:.2} |",
            arm.name,
            added.len(),
        );
    }
    let proxied = Proxied::start(128_000);
    let (mut direct, mut through) = unseen(&proxied, &Client::default()).await;
    let [direct, through] = [&mut direct, &mut through].map(|times| percentile(times, 50));
    println!(
        "200k-token history never seen before: {:.1} ms more than the {direct:.1} ms without ctx (p50)",
        through - direct
    );
}

impl Measured {
    /// Replays one session with a provider and a proxy of its own.
    async fn session(&mut self, arm: &Arm, bodies: &[Value]) {
        let delay = arm.summary;
        let provider = FakeProvider::builder().respond(move |request| match is_summary(request) {
            true => Step::new(Reply::Summary).delayed(delay),
            false => Step::text("ok"),
        });
        let provider = provider.start().expect("a free port");
        let config = format!("{{ server: {{ backgroundRatio: {} }} }}", arm.ratio);
        let proxied = Proxied::before(&provider.url(), WINDOW, &config);
        let url = Url::parse(&format!("{}/v1/messages", proxied.url)).expect("a URL");
        let client = Client::default();
        for body in bodies {
            let mut body = body.clone();
            body["model"] = json!(arm.model);
            ask(&client, &url, &body.to_string()).await;
            tokio::time::sleep(PAUSE).await;
        }
        for record in proxied.proxy.trace().sessions().iter().flat_map(|trace| &trace.requests) {
            let added = Duration::from_secs_f64(record.millis / 1_000.0);
            self.waited += usize::from(!delay.is_zero() && added >= delay);
            self.compactions += usize::from(record.compaction.is_some());
            self.added.push(added);
        }
        let prices = Catalogue::embedded().find(MODEL).expect("a known model").prices;
        let usages = provider.requests();
        self.usd += usages.iter().map(|request| prices.cost(&request.usage).0).sum::<f64>();
    }
}

/// Whether a request is for a summary: those have no tools.
fn is_summary(request: &Request) -> bool {
    !request.json["tools"].is_array()
}

/// Returns the bodies of each session's requests.
fn sessions() -> Vec<Vec<Value>> {
    let folders = ["claude-code", "pi"].into_iter().filter_map(recorded);
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "jsonl"));
    files.sort_unstable();
    let mut all: Vec<_> = files.iter().map(|file| recorded_bodies(file.as_path())).collect();
    if all.is_empty() {
        let messages: Vec<Message> = long(0)
            .iter()
            .map(|message| {
                ctx_dialect::openai_chat::parse(&message.to_string()).expect("a message")
            })
            .collect();
        let answers: Vec<usize> = (0..messages.len()).filter(|at| at % 2 == 1).collect();
        all.push(bodies(&messages, &answers));
    }
    all
}

fn recorded_bodies(file: &Path) -> Vec<Value> {
    let transcript = Transcript::open(file).expect("a session");
    let items = transcript.messages_to(None).expect("a session");
    let messages: Vec<Message> = items
        .iter()
        .map(|item| Message::clone(&item.entry.message().expect("a message")))
        .collect();
    let answers: Vec<usize> =
        items.iter().enumerate().filter(|(_, item)| item.request).map(|(at, _)| at).collect();
    bodies(&messages, &answers)
}

/// Returns the bodies of the requests that these messages answer.
fn bodies(messages: &[Message], answers: &[usize]) -> Vec<Value> {
    let body = |&at: &usize| {
        let parts = anthropic::write(&messages[..at]);
        let system = anthropic::system(parts.system.as_deref().unwrap_or("Be brief."), true);
        let system: Value = serde_json::from_str(&system).expect("JSON");
        let tools = json!([{ "name": "read", "input_schema": { "type": "object" } }]);
        json!({ "max_tokens": 1_024, "system": [system], "tools": tools, "messages": parts.messages })
    };
    let all = answers.iter().filter(|&&at| at > 0).map(body);
    all.take_while(|body| body.to_string().len() <= MOST_BYTES).collect()
}
