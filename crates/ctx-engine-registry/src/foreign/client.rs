//! The host's side of a running engine.

use ctx_core::{ContextView, IngestRequest, TurnContext};
use ctx_engine_sdk::protocol::{
    self, Budget, CommitTurn, Committed, Done, Encoding, Hello, Info, Ingest, Ingested, PROTOCOL,
    Row, SessionParams, Turn, Update, verb,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rejection::tidy;
use super::sessions::Sessions;
use super::transport::RawAnswer;
use super::{Channel, CheckContext, CheckedPlan, EngineError, Rejection, ViewSync, check, message};
use crate::Deadlines;

/// Size of a small request, in bytes.
const SMALL_REQUEST: usize = 512;

/// A running engine that has answered `hello`.
pub struct EngineClient {
    channel: Box<dyn Channel>,
    pub(super) info: Info,
    deadlines: Deadlines,
    sessions: Sessions,
}

ctx_core::partial_debug!(EngineClient, it, info = it.info);

impl EngineClient {
    /// Calls `hello` on the engine at the other end of a channel. It must be the engine selected as
    /// `id` (`NAME`, or `NAME-VARIANT`), and support this major version of the protocol.
    ///
    /// # Errors
    ///
    /// The failure of the engine.
    pub async fn start(
        id: &str,
        channel: Box<dyn Channel>,
        hello: &Hello,
        deadlines: Deadlines,
    ) -> Result<Self, EngineError> {
        let params = Encoding::Json.encode(hello).map_err(Rejection::from)?;
        let answer = channel.call(verb::HELLO, params, deadlines.of(verb::HELLO)).await?;
        let info: Info = decode_json(&answer)?;
        let major = |version: &str| version.split('.').next().map(str::to_owned);
        if major(&info.protocol) != major(PROTOCOL) {
            return Err(EngineError::Unfit {
                why: format!(
                    "it uses protocol version '{}', ctx uses {PROTOCOL}",
                    tidy(&info.protocol)
                ),
                hint: "use an engine and a ctx with the same major version of the protocol",
            });
        }
        let chosen = info.contract.encoding.as_deref().unwrap_or(Encoding::Json.name());
        if chosen != Encoding::Json.name() && !hello.encodings.iter().any(|name| name == chosen) {
            return Err(EngineError::Unfit {
                why: format!("it chose the encoding '{}', which was not offered", tidy(chosen)),
                hint: "an engine chooses one of 'encodings' of 'hello', or none: then JSON is used",
            });
        }
        if !is_id_of(id, &info.id) {
            return Err(EngineError::Unfit {
                why: format!("it reports the id '{}', but '{id}' was selected", tidy(&info.id)),
                hint: "name its manifest after the engine's id; a variant's name is that id, \
                       '-' and a suffix",
            });
        }
        Ok(Self { channel, info, deadlines, sessions: Sessions::default() })
    }

    /// Whether it is permanently lost.
    pub(super) fn is_lost(&self) -> bool {
        self.channel.is_lost()
    }

    /// Calls `assemble`, and checks the answer. The view is not changed.
    ///
    /// # Errors
    ///
    /// The failure of the engine.
    pub async fn assemble(
        &mut self,
        session_id: &str,
        view: &ContextView,
        turn: &TurnContext,
        adds_only: bool,
    ) -> Result<CheckedPlan, EngineError> {
        let ask = |update| protocol::Assemble {
            session_id: session_id.to_owned(),
            update,
            budget: budget(view),
            turn: turn_of(turn),
            prompt: None,
        };
        let (answer, sync) = self.call_with_update(session_id, view, verb::ASSEMBLE, ask).await?;
        let context = CheckContext { view, sync: &sync, adds_only };
        let checked = decode(&answer).and_then(|answer| Ok(check(answer, context)?));
        self.remember(session_id, sync, &checked);
        checked
    }

    /// Calls a verb that includes an update of a session. If the engine is out of step, all rows
    /// are sent again, once.
    pub(super) async fn call_with_update<P: Serialize>(
        &mut self,
        session_id: &str,
        view: &ContextView,
        verb: &str,
        ask: impl Fn(Update) -> P,
    ) -> Result<(RawAnswer, ViewSync), EngineError> {
        let contract = self.info.contract.clone();
        let session = self.sessions.of(session_id);
        session.counter = *view.ledger().counter();
        self.channel.count_with(session.counter);
        // Until the engine answers, it is unknown what it has applied: forget what was sent.
        let known = session.sync.take().filter(|_| contract.remembers);
        let is_news = known.is_some();
        let (sync, update) = match known {
            Some(sync) => sync.update(view, session.sync_options(&contract)),
            None => ViewSync::all(view, session.sync_options(&contract)),
        };
        // Drops the update once it is encoded: the engine may take long.
        let encoded = |update: Update| {
            let size = size_of_update(&update);
            encode(contract.encoding(), &ask(update), size)
        };
        match self.send(verb, encoded(update)?).await {
            Err(failure) if failure.is_out_of_step() && is_news => {
                let session = self.sessions.of(session_id);
                // It may have lost ingested messages as well.
                session.ingested.clear();
                let (sync, update) = ViewSync::all(view, session.sync_options(&contract));
                Ok((self.send(verb, encoded(update)?).await?, sync))
            }
            answer => Ok((answer?, sync)),
        }
    }

    /// Records what was sent to an engine that has answered, even if the answer is rejected. After
    /// a fault the engine may have applied nothing.
    pub(super) fn remember<T>(
        &mut self,
        session_id: &str,
        sync: ViewSync,
        answered: &Result<T, EngineError>,
    ) {
        if !matches!(answered, Err(EngineError::Fault(_))) {
            self.sessions.of(session_id).sync = Some(sync);
        }
    }

    /// Sends a new message, if the engine remembers messages.
    ///
    /// # Errors
    ///
    /// The failure of the engine.
    pub async fn ingest(&mut self, request: &IngestRequest) -> Result<bool, EngineError> {
        let contract = &self.info.contract;
        if !contract.remembers {
            return Ok(false);
        }
        let session = self.sessions.of(&request.session_id);
        let message = &request.message;
        let row = Row {
            id: request.entry.to_string(),
            role: message.role.name().to_owned(),
            tokens: session.counter.message(message).get(),
            message: contract.contents.then(|| message::encoded(message, Encoding::Json)).flatten(),
            ..Row::default()
        };
        let session_id = request.session_id.clone();
        let params = Ingest { session_id, row, is_heartbeat: request.is_heartbeat };
        let Ingested { ingested } = decode_json(&self.call(verb::INGEST, &params).await?)?;
        if ingested {
            let entry = request.entry.clone();
            self.sessions.of(&request.session_id).ingested.insert(entry);
        }
        Ok(ingested)
    }

    /// Lets the engine import the history of an existing session.
    pub(super) async fn bootstrap(
        &mut self,
        request: protocol::Bootstrap,
    ) -> Result<protocol::Bootstrapped, EngineError> {
        if !self.offers(verb::BOOTSTRAP) {
            return Ok(protocol::Bootstrapped::default());
        }
        decode_json(&self.call(verb::BOOTSTRAP, &request).await?)
    }

    /// Reports that a turn's messages are stored permanently.
    pub(super) async fn commit_turn(
        &mut self,
        session_id: &str,
        key: &str,
    ) -> Result<(), EngineError> {
        let (session_id, advancement_key) = (session_id.to_owned(), key.to_owned());
        let params = CommitTurn { session_id, advancement_key };
        self.tell::<Committed>(verb::COMMIT_TURN, &params).await
    }

    /// Calls a verb that needs only the session id: `after_turn` or `maintain`.
    pub(super) async fn of_session(
        &mut self,
        verb: &str,
        session_id: &str,
    ) -> Result<(), EngineError> {
        self.tell::<Done>(verb, &SessionParams { session_id: session_id.to_owned() }).await
    }

    /// Calls a verb, if the engine implements it.
    pub(super) async fn tell<A: DeserializeOwned>(
        &mut self,
        verb: &str,
        params: &impl Serialize,
    ) -> Result<(), EngineError> {
        if self.offers(verb) {
            let _: A = decode_json(&self.call(verb, params).await?)?;
        }
        Ok(())
    }

    /// Reports that the engine is not needed any more.
    pub(super) async fn dispose(&mut self) -> Result<(), EngineError> {
        self.call(verb::DISPOSE, &Done {}).await.map(drop)
    }

    pub(super) fn offers(&self, verb: &str) -> bool {
        self.info.contract.verbs.iter().any(|offered| offered == verb)
    }

    async fn call(&self, verb: &str, params: &impl Serialize) -> Result<RawAnswer, EngineError> {
        let params = serde_json::to_vec(params).map_err(protocol::Error::from);
        self.send(verb, params.map_err(Rejection::from)?).await
    }

    async fn send(&self, verb: &str, params: Vec<u8>) -> Result<RawAnswer, EngineError> {
        Ok(self.channel.call(verb, params, self.deadlines.of(verb)).await?)
    }
}

/// Whether `selected` is an id of the engine that reports the id `own`: `own` itself, or `own`, `-`
/// and a suffix, as one engine may be installed in several variants.
fn is_id_of(selected: &str, own: &str) -> bool {
    let rest = selected.strip_prefix(own).filter(|_| !own.is_empty());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

pub(super) fn budget(view: &ContextView) -> Budget {
    let ledger = view.ledger();
    Budget { window: ledger.window().get(), messages: ledger.budget().get() }
}

pub(super) fn turn_of(turn: &TurnContext) -> Turn {
    Turn { now: turn.now.0, last_request: turn.last_request.map(|at| at.0) }
}

pub(super) fn decode<'a, T: Deserialize<'a>>(answer: &'a RawAnswer) -> Result<T, EngineError> {
    Ok(answer.read()?.map_err(Rejection::from)?)
}

fn decode_json<T: DeserializeOwned>(answer: &RawAnswer) -> Result<T, EngineError> {
    Ok(answer.read_json()?.map_err(Rejection::from)?)
}

/// Encodes parameters. `size` is the approximate size in bytes, to avoid reallocations.
fn encode(encoding: Encoding, params: &impl Serialize, size: usize) -> Result<Vec<u8>, Rejection> {
    let mut bytes = Vec::with_capacity(size);
    encoding.write(&mut bytes, params)?;
    Ok(bytes)
}

/// Returns the approximate size of an encoded update, in bytes.
fn size_of_update(update: &Update) -> usize {
    let rows = update.changed.iter().chain(&update.added);
    let row =
        |row: &Row| 160 + row.id.len() + row.message.as_ref().map_or(0, |m| m.as_bytes().len());
    SMALL_REQUEST + rows.map(row).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_can_be_selected_by_its_id_and_variants_of_it() {
        for (selected, own, meant) in [
            ("lossless", "lossless", true),
            ("lossless-process", "lossless", true),
            ("lossless2", "lossless", false),
            ("loss", "lossless", false),
            ("lossless", "", false),
        ] {
            assert_eq!(is_id_of(selected, own), meant, "{selected}, {own}");
        }
    }
}
