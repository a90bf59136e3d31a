//! The four rules of `finish`, for arbitrary sessions, budgets and edits.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{
    Block, ContextView, Counter, Entry, Finished, Manifest, Message, NodeState, Projection, Role,
    TokenLedger, Tokens, check_pairs,
};
use proptest::prelude::*;

use crate::session::{
    Expected, Step, assert_same, call, config, entry, ledger, result, steps, text,
};

/// Runs a session and checks every request it makes.
struct Run {
    view: ContextView,
    entries: Vec<Arc<Entry>>,
    expected: Expected,
    projections: Vec<Projection>,
    sent: Option<(Vec<Arc<Message>>, Tokens)>,
}

impl Run {
    fn new(ledger: TokenLedger) -> Self {
        Self {
            view: ContextView::new(ledger).with_projections([]),
            entries: Vec::new(),
            expected: Expected::default(),
            projections: Vec::new(),
            sent: None,
        }
    }

    fn step(&mut self, step: Step) {
        let nodes = self.view.len();
        let within = |at: usize| (nodes > 0).then(|| at % nodes);
        match step {
            Step::Append(message) => self.append(*message),
            Step::Finish => self.finish(),
            Step::Calibrate(percent) => self.view.ledger_mut().calibrate(percent, 100),
            Step::Drop(at) => {
                within(at).map(|at| self.view.drop(at, "test", "by chance"));
            }
            Step::Trim(at) => {
                if let Some(at) = within(at) {
                    let form = trimmed(&self.view.node(at).message().unwrap());
                    self.view.replace(at, form, "test", "by chance").unwrap();
                }
            }
            Step::Insert(at) => {
                let message = Message::text(Role::Custom, "remember the milk");
                let id = format!("inserted-{}", self.view.edits().len());
                let at = at % (nodes + 1);
                let at = self.view.insert(
                    at,
                    Arc::new(Entry::in_memory(id, message)),
                    "test",
                    "by chance",
                );
                assert_eq!(self.view.node(at.unwrap()).state(), NodeState::Inserted);
            }
            Step::Pin(at) => {
                if let Some(at) = within(at)
                    && self.view.node(at).is_live()
                {
                    self.view.pin(at, "test", "by chance");
                    let id = self.view.node(at).entry().id().to_string();
                    // A synthetic result is removed when the real result arrives.
                    if !id.starts_with("synthetic") {
                        self.expected.pinned.insert(id);
                    }
                }
            }
        }
    }

    fn append(&mut self, message: Message) {
        let entry = entry(self.entries.len(), message);
        self.expected.append(&entry);
        self.entries.push(entry.clone());
        self.view.append(entry).unwrap();
    }

    fn finish(&mut self) {
        let finished = self.view.finish().unwrap();
        self.projections.extend(self.view.take_projections());
        let messages = self.view.messages().unwrap();
        self.check_rules(&messages);
        self.check_sums(&messages, &self.view.manifest(), &finished);
        self.check_prefix(&messages, &finished);
        self.check_second_finish(&messages);
        self.check_output_as_input(&messages);
        self.check_projections();
        self.sent = Some((messages, self.view.total()));
    }

    fn check_rules(&self, messages: &[Arc<Message>]) {
        assert!(self.view.used() <= self.view.ledger().limit(), "over the limit");
        check_pairs(messages.iter().map(|m| &**m)).unwrap();
        let live: HashSet<String> =
            self.view.nodes().iter().map(|n| n.entry().id().to_string()).collect();
        for id in self.expected.newest_user.iter().chain(&self.expected.pinned) {
            assert!(live.contains(id), "{id} is gone");
        }
        let calls: HashSet<&str> =
            messages.iter().flat_map(|m| m.tool_calls()).map(|c| &*c.id).collect();
        let wanted = &self.expected.calls_in_progress;
        let few = if wanted.len() <= 30 { wanted.len() } else { 1 };
        for id in wanted.iter().rev().take(few) {
            assert!(calls.contains(&**id), "call {id} in progress is gone");
        }
    }

    fn check_sums(&self, messages: &[Arc<Message>], manifest: &Manifest, finished: &Finished) {
        let ledger = self.view.ledger();
        let sum: Tokens = messages.iter().map(|m| ledger.count(m)).sum();
        assert_eq!(self.view.total(), sum);
        let results = messages.iter().filter(|m| m.tool_results().next().is_some());
        assert_eq!(self.view.result_total(), results.map(|m| ledger.count(m)).sum());
        let components: Tokens = manifest.components.iter().map(|c| c.tokens).sum();
        assert_eq!(components, sum + ledger.fixed());
        assert_eq!(manifest.entries.iter().map(|e| e.tokens).sum::<Tokens>(), sum);
        assert_eq!((manifest.tokens, manifest.limit), (finished.tokens, ledger.limit()));
        assert_eq!(manifest.unchanged_prefix, finished.unchanged_prefix);
    }

    fn check_prefix(&self, messages: &[Arc<Message>], finished: &Finished) {
        let ledger = self.view.ledger();
        let fixed = ledger.system() + ledger.tools;
        let Some((sent, total)) = &self.sent else {
            return assert_eq!(finished.unchanged_prefix, Tokens::ZERO);
        };
        let common = messages.iter().zip(sent).take_while(|(now, then)| now == then);
        let common: Tokens = common.map(|(m, _)| ledger.count(m)).sum();
        assert!(finished.unchanged_prefix <= fixed + common, "the prefix is shorter than reported");
        if finished.edits.is_empty() && !sent.is_empty() {
            assert_eq!(finished.unchanged_prefix, fixed + *total);
        }
    }

    fn check_second_finish(&mut self, messages: &[Arc<Message>]) {
        let again = self.view.finish().unwrap();
        assert_eq!(again.edits, []);
        assert_same(&self.view.messages().unwrap(), messages, "finished again");
    }

    fn check_output_as_input(&self, messages: &[Arc<Message>]) {
        let mut view = ContextView::new(self.view.ledger().clone());
        for (n, message) in messages.iter().enumerate() {
            view.append(entry(n, Message::clone(message))).unwrap();
        }
        assert_eq!(view.finish().unwrap().edits, []);
        assert_same(&view.messages().unwrap(), messages, "its output as input");
    }

    /// A process with the same transcript and the stored forms sends the same bytes. Inserted
    /// messages are excluded, because layers insert them again.
    fn check_projections(&self) {
        let own = |n: &&ctx_core::Node| !n.entry().id().starts_with("inserted");
        let sent = self.view.nodes().iter().filter(own).map(|n| n.message().unwrap());
        let mut other = ContextView::new(self.view.ledger().clone())
            .with_projections(self.projections.iter().cloned());
        for entry in &self.entries {
            let message = entry.message().unwrap();
            other.append(Arc::new(Entry::in_memory(entry.id().clone(), message))).unwrap();
        }
        other.finish().unwrap();
        let sent: Vec<_> = sent.collect();
        assert_same(&other.messages().unwrap(), &sent, "in another process");
        assert_eq!(other.take_projections(), []);
    }
}

/// Returns the message with every text cut to ten characters.
fn trimmed(message: &Message) -> Message {
    let cut = |block: &mut Block| {
        if let Block::Text { text } = block {
            *text = text.chars().take(10).collect();
        }
    };
    let mut form = message.clone();
    for block in &mut form.blocks {
        match block {
            Block::ToolResult(result) => result.content.iter_mut().for_each(cut),
            block => cut(block),
        }
    }
    form
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn any_session(ledger in ledger(), steps in steps()) {
        let mut run = Run::new(ledger);
        for step in steps {
            run.step(step);
        }
        run.finish();
    }
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn hundreds_of_parallel_calls(
        ledger in ledger(),
        count in 1..700usize,
        answer in text(),
        together in any::<bool>(),
        answered in 0..=100usize,
    ) {
        let mut run = Run::new(ledger);
        run.append(Message::text(Role::User, "all of them, please"));
        let id = |n: usize| format!("call-{n}");
        let calls = (0..count).map(|n| call(id(n), "{\"path\": \"/a/long/path/to/something\"}"));
        run.append(Message::new(Role::Assistant, calls.collect()));
        let answers: Vec<Block> = (0..count * answered / 100)
            .map(|n| result(id(n), vec![Block::text(answer.clone())]))
            .collect();
        if together {
            run.append(Message::new(Role::User, answers));
        } else {
            for answer in answers {
                run.append(Message::new(Role::ToolResult, vec![answer]));
            }
        }
        run.finish();
        run.append(Message::text(Role::Assistant, "done"));
        run.append(Message::text(Role::User, "thanks"));
        run.finish();
    }
}

#[test]
fn a_system_prompt_addition_is_counted_and_ends_the_cached_prefix() {
    let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
    let mut view = ContextView::new(ledger);
    view.append(Arc::new(Entry::in_memory("a", Message::text(Role::User, "hello")))).unwrap();
    let plain = view.finish().unwrap().tokens;
    let room = view.ledger().budget();
    let mut assemble = |addition: Option<&str>| {
        view.set_system_addition(addition.map(str::to_owned));
        let finished = view.finish().unwrap();
        (finished.tokens, finished.unchanged_prefix > Tokens::ZERO, view.ledger().budget())
    };
    let added = Counter::default().text("remember this");
    assert_eq!(assemble(Some("remember this")), (plain + added, false, room - added));
    assert_eq!(assemble(Some("remember this")), (plain + added, true, room - added));
    assert_eq!(assemble(Some("remember thus")), (plain + added, false, room - added));
    assert_eq!(assemble(None), (plain, false, room));
}
