//! A fake model provider: an HTTP server on loopback that answers from a script.
//!
//! It speaks OpenAI chat completions and responses, Anthropic messages and Gemini (with the counting
//! of tokens of both) and Ollama's chat, each as a stream or in one piece, `/models`, and the embeddings of OpenAI and
//! Ollama. Whatever stands in front of these paths is ignored, so any base URL works. It needs no
//! model: a script says what is answered, or a function does, or else the answer is a summary
//! made of the prompt's own lines.
//!
//! It can do all that a provider does to a client on a bad day: refuse with the bodies that real
//! providers send, say an overflow in the words of twenty of them, fail in the middle of a stream,
//! wait until the test lets it go on, cut the connection at any point, send garbage, or never end.
//! Requests are recorded, with what became of them. Tokens are characters over four, and a prompt
//! cache is simulated: `usage` says what part of a prompt was there before.
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
//! An answer that waits is let go by a handle, not by a clock:
//!
//! ```
//! use ctx_testkit::provider::{FakeProvider, Moment, Step};
//!
//! # fn main() -> ctx_core::Result<()> {
//! let script = [Step::text("late").held(), Step::text("slow").held_at(Moment::AfterEvents(2))];
//! let provider = FakeProvider::builder().script(script).start()?;
//! // ... a client asks, the test does what it wants to do meanwhile, and then:
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
mod fast;
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

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use loopback::Loopback;

pub use api::Api;
pub use api::embeddings::embedding;
pub use builder::{Builder, Scenario};
pub use failure::{Failure, FailureKind, RetryAfter};
pub use fast::Fast;
pub use prompt::Prompt;
pub use request::{Outcome, Request};
pub use script::{Answer, Call, Cut, Finish, Moment, Raw, Reply, Report, Wait, When};
pub use step::Step;
pub use words::Words;

/// When answers say that they were made, in seconds since 1970: always the same, so that answers
/// can be compared.
const CREATED: u64 = 1_767_600_000;

/// How long a blocking wait goes on before it says that nothing came. It only bounds a test that
/// fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A fake provider that runs until it is dropped. See the [module](self).
pub struct FakeProvider {
    shared: Arc<server::Shared>,
    server: Loopback,
}

impl FakeProvider {
    /// Sets one up.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Its URL without a path and without a slash at the end, as Anthropic's and Ollama's clients
    /// want it.
    #[must_use]
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Its URL with `/v1`, as OpenAI's clients want it.
    #[must_use]
    pub fn v1(&self) -> String {
        format!("{}/v1", self.url())
    }

    /// What it was asked so far, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.ledger.requests()
    }

    /// How often it was asked.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.ledger.len()
    }

    /// How many requests the rest of the script is for.
    #[must_use]
    pub fn steps_left(&self) -> usize {
        self.shared.playbook.left()
    }

    /// Adds steps to the script of the running provider.
    pub fn extend(&self, steps: impl IntoIterator<Item = Step>) {
        self.shared.playbook.extend(steps);
    }

    /// Lets one answer go on that waits for [`Wait::Release`]; the next one that will, if none
    /// does.
    pub fn release(&self) {
        self.shared.releases.add_permits(1);
    }

    /// Lets all answers go on that wait for [`Wait::Release`], now and later.
    pub fn release_all(&self) {
        self.shared.releases.close();
    }

    /// Waits until it was asked `count` times. `false` means that this did not happen within 30 s.
    /// It blocks its thread: async code takes [`arrived`](Self::arrived).
    #[must_use]
    pub fn wait_arrived(&self, count: usize) -> bool {
        self.shared.ledger.wait_until(PATIENCE, |requests| requests.len() >= count)
    }

    /// Waits until request `number`, counted from 1, has come to its end, whatever end, and says
    /// which. `None` means that this did not happen within 30 s. It blocks its thread: async code
    /// takes [`ended`](Self::ended).
    #[must_use]
    pub fn wait_ended(&self, number: usize) -> Option<Outcome> {
        self.shared.ledger.wait_until(PATIENCE, |requests| outcome(requests, number).is_some());
        outcome(&self.requests(), number)
    }

    /// Waits until it was asked `count` times.
    pub async fn arrived(&self, count: usize) {
        self.shared.ledger.until(|requests| requests.len() >= count).await;
    }

    /// Waits until request `number`, counted from 1, has come to its end, and says which.
    pub async fn ended(&self, number: usize) -> Outcome {
        self.shared.ledger.until(|requests| outcome(requests, number).is_some()).await;
        outcome(&self.requests(), number).unwrap_or_default()
    }

    /// Blocks until nothing was asked for so long.
    pub fn wait_idle(&self, idle: Duration) {
        self.shared.ledger.wait_idle(idle);
    }

    /// Stops it, as dropping it does: open connections are cut, and its thread is over.
    pub fn stop(self) {}
}

fn outcome(requests: &[Request], number: usize) -> Option<Outcome> {
    let request = requests.get(number.checked_sub(1)?)?;
    (request.outcome != Outcome::Open).then_some(request.outcome)
}

impl fmt::Debug for FakeProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeProvider")
            .field("address", &self.address())
            .field("requests", &self.count())
            .finish_non_exhaustive()
    }
}
