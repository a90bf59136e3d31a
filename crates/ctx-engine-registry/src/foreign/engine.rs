//! An engine that is up, as the host speaks to it.

use std::fmt;

use ctx_core::{ContextView, IngestRequest, TurnContext};
use ctx_engine_sdk::protocol::{
    self, Budget, CommitTurn, Committed, Done, Hello, Info, Ingest, Ingested, OfSession, PROTOCOL,
    Row, Turn, Update, verb,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rejection::tidy;
use super::sessions::Sessions;
use super::{Channel, Checked, Ground, Rejection, Told, Trouble, check, form};
use crate::Deadlines;
use crate::carrier::Answered;

/// What a small request takes as JSON, in bytes.
const ROOM: usize = 512;

/// An engine that is up and has said hello.
pub struct Foreign {
    channel: Box<dyn Channel>,
    info: Info,
    deadlines: Deadlines,
    sessions: Sessions,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreign").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Foreign {
    /// Says hello to the engine at the other end of a channel. It must be the one that was selected
    /// as `id` (`NAME`, or `NAME-VARIANT`), and speak this major version of the protocol.
    ///
    /// # Errors
    ///
    /// What it does instead.
    pub async fn start(
        id: &str,
        channel: Box<dyn Channel>,
        hello: &Hello,
        deadlines: Deadlines,
    ) -> Result<Self, Trouble> {
        let params = encode(hello, ROOM)?;
        let answer = channel.call(verb::HELLO, params, deadlines.of(verb::HELLO)).await?;
        let info: Info = decode(&answer)?;
        let major = |version: &str| version.split('.').next().map(str::to_owned);
        if major(&info.protocol) != major(PROTOCOL) {
            return Err(Trouble::Unfit {
                why: format!("it speaks protocol '{}', ctx {PROTOCOL}", tidy(&info.protocol)),
                hint: "take an engine and a ctx of one major version of the protocol",
            });
        }
        if !is_meant(id, &info.id) {
            return Err(Trouble::Unfit {
                why: format!("it says that it is '{}', and '{id}' was selected", tidy(&info.id)),
                hint: "name its manifest as the engine calls itself, or so that it begins with that \
                       and a '-'",
            });
        }
        Ok(Self { channel, info, deadlines, sessions: Sessions::default() })
    }

    /// What it says of itself.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Whether it is gone for good.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.channel.is_lost()
    }

    /// Asks what shall go out, and checks the answer. The view stays as it is.
    ///
    /// # Errors
    ///
    /// What it does instead.
    pub async fn assemble(
        &mut self,
        session_id: &str,
        view: &ContextView,
        turn: &TurnContext,
        adds_only: bool,
    ) -> Result<Checked, Trouble> {
        let ask = |update| protocol::Assemble {
            session_id: session_id.to_owned(),
            update,
            budget: budget(view),
            turn: turn_of(turn),
            prompt: None,
        };
        let (answer, told) = self.ask_of(session_id, view, verb::ASSEMBLE, ask).await?;
        let ground = Ground { view, told: &told, adds_only };
        let checked = decode(&answer).and_then(|answer| Ok(check(answer, ground)?));
        self.remember(session_id, told, &checked);
        checked
    }

    /// Calls a verb that comes with an update of a session. An engine that is out of step is told
    /// everything again, once.
    pub(super) async fn ask_of<P: Serialize>(
        &mut self,
        session_id: &str,
        view: &ContextView,
        verb: &str,
        ask: impl Fn(Update) -> P,
    ) -> Result<(Answered, Told), Trouble> {
        let contract = self.info.contract.clone();
        let session = self.sessions.of(session_id);
        session.counter = *view.ledger().counter();
        self.channel.count_with(session.counter);
        // Until it has answered nobody knows what it has taken in: what was told is forgotten.
        let known = session.told.take().filter(|_| contract.remembers);
        let is_news = known.is_some();
        let (told, update) = match known {
            Some(told) => told.update(view, session.telling(&contract)),
            None => Told::all(view, session.telling(&contract)),
        };
        // The update itself is not needed while the engine works.
        let encoded = |update: Update| {
            let room = room(&update);
            encode(&ask(update), room)
        };
        match self.send(verb, encoded(update)?).await {
            Err(trouble) if trouble.is_out_of_step() && is_news => {
                let session = self.sessions.of(session_id);
                // It may have lost what it was given as well.
                session.ingested.clear();
                let (told, update) = Told::all(view, session.telling(&contract));
                Ok((self.send(verb, encoded(update)?).await?, told))
            }
            answer => Ok((answer?, told)),
        }
    }

    /// Notes what an engine was told that has answered. One whose bytes are no answer may have taken
    /// in nothing.
    pub(super) fn remember<T>(
        &mut self,
        session_id: &str,
        told: Told,
        answered: &Result<T, Trouble>,
    ) {
        if !matches!(answered, Err(Trouble::Fault(_))) {
            self.sessions.of(session_id).told = Some(told);
        }
    }

    /// Gives it a new message, if it remembers any.
    ///
    /// # Errors
    ///
    /// What it does instead.
    pub async fn ingest(&mut self, request: &IngestRequest) -> Result<bool, Trouble> {
        if !self.info.contract.remembers {
            return Ok(false);
        }
        let session = self.sessions.of(&request.session_id);
        let message = &request.message;
        let row = Row {
            id: request.entry.to_string(),
            role: message.role.name().to_owned(),
            tokens: session.counter.message(message).get(),
            message: self.info.contract.contents.then(|| form::json(message)).flatten(),
            ..Row::default()
        };
        let session_id = request.session_id.clone();
        let params = Ingest { session_id, row, is_heartbeat: request.is_heartbeat };
        let Ingested { ingested } = decode(&self.call(verb::INGEST, &params).await?)?;
        if ingested {
            let entry = request.entry.clone();
            self.sessions.of(&request.session_id).ingested.insert(entry);
        }
        Ok(ingested)
    }

    /// Has it take in the history of a session that existed before.
    ///
    /// # Errors
    ///
    /// What it does instead.
    pub async fn bootstrap(
        &mut self,
        request: protocol::Bootstrap,
    ) -> Result<protocol::Bootstrapped, Trouble> {
        if !self.offers(verb::BOOTSTRAP) {
            return Ok(protocol::Bootstrapped::default());
        }
        decode(&self.call(verb::BOOTSTRAP, &request).await?)
    }

    /// Tells it that a turn's messages are stored for good.
    ///
    /// # Errors
    ///
    /// What it does instead.
    pub async fn commit_turn(&mut self, session_id: &str, key: &str) -> Result<(), Trouble> {
        let (session_id, advancement_key) = (session_id.to_owned(), key.to_owned());
        let params = CommitTurn { session_id, advancement_key };
        self.tell::<Committed>(verb::COMMIT_TURN, &params).await
    }

    /// Tells it of a session what needs no more than its id: `after_turn` or `maintain`.
    ///
    /// # Errors
    ///
    /// What it does instead.
    pub async fn of_session(&mut self, verb: &str, session_id: &str) -> Result<(), Trouble> {
        self.tell::<Done>(verb, &OfSession { session_id: session_id.to_owned() }).await
    }

    /// Tells it something, if it does something about that verb.
    pub(super) async fn tell<A: DeserializeOwned>(
        &mut self,
        verb: &str,
        params: &impl Serialize,
    ) -> Result<(), Trouble> {
        if self.offers(verb) {
            let _: A = decode(&self.call(verb, params).await?)?;
        }
        Ok(())
    }

    /// Tells it that it is not needed any more.
    ///
    /// # Errors
    ///
    /// What it does instead.
    pub async fn dispose(&mut self) -> Result<(), Trouble> {
        self.call(verb::DISPOSE, &Done {}).await.map(drop)
    }

    pub(super) fn offers(&self, verb: &str) -> bool {
        self.info.contract.verbs.iter().any(|offered| offered == verb)
    }

    async fn call(&self, verb: &str, params: &impl Serialize) -> Result<Answered, Trouble> {
        self.send(verb, encode(params, ROOM)?).await
    }

    async fn send(&self, verb: &str, params: Vec<u8>) -> Result<Answered, Trouble> {
        Ok(self.channel.call(verb, params, self.deadlines.of(verb)).await?)
    }
}

/// Whether the engine that calls itself `own` is meant by `selected`: by its own id, or by that and
/// a suffix, as one engine may be installed in several variants.
fn is_meant(selected: &str, own: &str) -> bool {
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

pub(super) fn decode<'a, T: Deserialize<'a>>(answer: &'a Answered) -> Result<T, Trouble> {
    Ok(answer.read()?.map_err(Rejection::from)?)
}

/// `room` is about how many bytes it will take, so that megabytes are not moved as they grow.
fn encode(params: &impl Serialize, room: usize) -> Result<Vec<u8>, Rejection> {
    let mut json = Vec::with_capacity(room);
    serde_json::to_writer(&mut json, params)?;
    Ok(json)
}

/// About what an update takes as JSON.
fn room(update: &Update) -> usize {
    let rows = update.changed.iter().chain(&update.added);
    let row = |row: &Row| 160 + row.id.len() + row.message.as_ref().map_or(0, |m| m.get().len());
    ROOM + rows.map(row).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_meant_by_its_own_id_and_by_variants_of_it() {
        for (selected, own, meant) in [
            ("lossless", "lossless", true),
            ("lossless-process", "lossless", true),
            ("lossless2", "lossless", false),
            ("loss", "lossless", false),
            ("lossless", "", false),
        ] {
            assert_eq!(is_meant(selected, own), meant, "{selected}, {own}");
        }
    }
}
