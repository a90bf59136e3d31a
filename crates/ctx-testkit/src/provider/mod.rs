//! A fake model provider: an HTTP server on loopback that answers from a script.
//!
//! It speaks OpenAI chat completions and responses, Anthropic messages and Gemini (with token
//! counting for both) and Ollama's chat, each streamed or not, `/models`, and the embeddings of
//! OpenAI and Ollama. Anything in front of these paths is ignored, so any base URL works. It needs
//! no model: a script or a function supplies the answers; without either, the answer is a summary
//! made of the prompt's own lines.
//!
//! It can produce all failures of a provider: refuse with the bodies of real providers, report an
//! overflow with the wording of twenty of them, fail in the middle of a stream, wait for a release
//! by the test, cut the connection at any point, send garbage, or never end. Requests are recorded,
//! with their outcome. Tokens are characters divided by four, and a prompt cache is simulated:
//! `usage` contains the part of a prompt that was sent before.
//!
//! ```
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! use ctx_testkit::provider::{FailureKind, FakeProvider, Step};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let provider = FakeProvider::builder()
//!     .script([Step::error(FailureKind::Overloaded), Step::text("hello")])
//!     .start()?;
//!
//! let body = r#"{"model":"m","messages":[{"role":"user","content":"say hello"}]}"#;
//! let ask = || -> std::io::Result<String> {
//!     let mut stream = TcpStream::connect(provider.address())?;
//!     write!(
//!         stream,
//!         "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\n\
//!          content-length: {}\r\nconnection: close\r\n\r\n{body}",
//!         body.len(),
//!     )?;
//!     let mut answer = String::new();
//!     stream.read_to_string(&mut answer)?;
//!     Ok(answer)
//! };
//! assert!(ask()?.starts_with("HTTP/1.1 503 "));
//! assert!(ask()?.contains(r#""content":"hello""#));
//!
//! let asked = provider.requests();
//! assert_eq!(asked.len(), 2);
//! assert_eq!(asked[1].prompt.last_user(), "say hello");
//! assert_eq!(asked[1].key(), Some("k"));
//! assert_eq!(asked[1].usage.cache_read, 3); // The same prompt as before: all of it is cached.
//! # Ok(())
//! # }
//! ```
//!
//! A waiting answer is released by a handle, not by a clock:
//!
//! ```
//! use ctx_testkit::provider::{FakeProvider, Moment, Step};
//!
//! # fn main() -> ctx_core::Result<()> {
//! let script = [Step::text("late").held(), Step::text("slow").held_at(Moment::AfterEvents(2))];
//! let provider = FakeProvider::builder().script(script).start()?;
//! // ... a client sends a request, the test does something else meanwhile, and then:
//! provider.release();
//! # Ok(())
//! # }
//! ```

mod answer;
mod api;
mod builder;
mod cache;
mod delivery;
mod failure;
mod ledger;
mod loopback;
mod playbook;
mod prompt;
mod request;
mod script;
mod server;
mod speech;
mod step;
pub mod strict;
mod wire;
mod words;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use loopback::Loopback;

pub use api::Api;
pub use api::embeddings::embedding;
pub use builder::{Builder, Scenario};
pub use failure::{Failure, FailureKind, RetryAfter};
pub use prompt::Prompt;
pub use request::{Outcome, Request};
pub use script::{Answer, Call, Cut, Finish, Moment, Raw, Reply, Report, Wait, When};
pub use step::Step;
pub use words::Words;

/// The creation time in answers, in seconds since 1970: constant, so that answers can be compared.
const CREATED: u64 = 1_767_600_000;

/// The timeout of blocking waits. It only limits tests that fail.
const PATIENCE: Duration = Duration::from_secs(30);

/// A fake provider that runs until it is dropped. See the [module](self).
pub struct FakeProvider {
    shared: Arc<server::Shared>,
    server: Loopback,
}

impl FakeProvider {
    /// Returns a builder.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Returns its URL without a path and without a trailing slash, as Anthropic's and Ollama's
    /// clients expect it.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Returns its URL with `/v1`, as OpenAI's clients expect it.
    pub fn v1(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// Returns the requests so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.ledger.requests()
    }

    /// Returns the number of requests so far.
    pub fn count(&self) -> usize {
        self.shared.ledger.len()
    }

    /// Returns the number of requests that the rest of the script covers.
    pub fn steps_left(&self) -> usize {
        self.shared.playbook.left()
    }

    /// Adds steps to the script of the running provider.
    pub fn extend(&self, steps: impl IntoIterator<Item = Step>) {
        self.shared.playbook.extend(steps);
    }

    /// Releases one answer that waits for [`Wait::Release`]. If none is waiting, releases the next
    /// one.
    pub fn release(&self) {
        self.shared.releases.add_permits(1);
    }

    /// Releases all answers that wait for [`Wait::Release`], now and later.
    pub fn release_all(&self) {
        self.shared.releases.close();
    }

    /// Waits until `count` requests have arrived. Returns `false` if they have not after 30 s.
    /// Blocks the thread: in async code use [`arrived`](Self::arrived).
    pub fn wait_arrived(&self, count: usize) -> bool {
        self.shared.ledger.wait_until(PATIENCE, |requests| requests.len() >= count)
    }

    /// Waits until request `number`, counted from 1, has finished, and returns its outcome. Returns
    /// `None` if it has not finished after 30 s. Blocks the thread: in async code use
    /// [`ended`](Self::ended).
    pub fn wait_ended(&self, number: usize) -> Option<Outcome> {
        self.shared.ledger.wait_until(PATIENCE, |requests| outcome(requests, number).is_some());
        outcome(&self.requests(), number)
    }

    /// Waits until `count` requests have arrived.
    pub async fn arrived(&self, count: usize) {
        self.shared.ledger.until(|requests| requests.len() >= count).await;
    }

    /// Waits until request `number`, counted from 1, has finished, and returns its outcome.
    pub async fn ended(&self, number: usize) -> Outcome {
        self.shared.ledger.until(|requests| outcome(requests, number).is_some()).await;
        outcome(&self.requests(), number).unwrap_or_default()
    }

    /// Blocks until no request has arrived for this time.
    pub fn wait_idle(&self, idle: Duration) {
        self.shared.ledger.wait_idle(idle);
    }

    /// Stops it, as dropping it does: open connections are cut, and its thread ends.
    pub fn stop(self) {}
}

fn outcome(requests: &[Request], number: usize) -> Option<Outcome> {
    let request = requests.get(number.checked_sub(1)?)?;
    (request.outcome != Outcome::Open).then_some(request.outcome)
}

ctx_core::partial_debug!(FakeProvider, it, address = it.address(), requests = it.count());
