//! Runs tools, one after another.

use ctx_core::{CompactionTrigger, Message, Result, ToolCall, ToolOutput, ToolResult};
use tracing::Instrument;

use super::compact::WindowShare;
use super::{Turn, is_disk_error};
use crate::host::{Event, NoticeKind, layer};

impl Turn<'_> {
    /// Runs the calls of an answer. Each result is bounded and stored, and the session's size
    /// checked, before the next call runs.
    pub(super) async fn run_tools(&mut self, calls: &[ToolCall]) -> Result<()> {
        let mut may_compact = true;
        for (at, call) in calls.iter().enumerate() {
            if let Some(reason) = self.repeated.stopped() {
                let reason = reason.to_owned();
                return self.refuse(&calls[at..], &reason).await;
            }
            self.listener.on(Event::ToolBegan(call));
            let span = tracing::info_span!(
                "tool",
                otel.name = format!("execute_tool {}", call.name),
                gen_ai.operation.name = "execute_tool",
                gen_ai.tool.name = %call.name,
                gen_ai.tool.call.id = %call.id,
            );
            let mut output = self.run_tool(call).instrument(span).await;
            if let Some(reason) = self.repeated.note(call, &output) {
                let words = reason.to_owned();
                output.content.push(ctx_core::Block::text(format!("[{words}]")));
                self.notify(NoticeKind::ToolLoop, words);
            }
            self.listener.on(Event::ToolEnded(call, &output));
            self.store_result(call, output).await?;
            let more = at + 1 < calls.len();
            if more && may_compact && self.is_over_limit() {
                // A compaction that freed nothing will not help after the next call either.
                may_compact = self.make_room().await?;
            }
        }
        Ok(())
    }

    /// Compacts between two calls. Returns whether that had an effect. A session that is still too
    /// large is handled with the next request.
    async fn make_room(&mut self) -> Result<bool> {
        self.flush_first(WindowShare::Whole).await;
        match self.compact(CompactionTrigger::Threshold, 1, None).await {
            Ok(done) => Ok(done.compacted),
            Err(error) if is_disk_error(error.kind()) => Err(error),
            Err(error) => {
                let words = format!("the session was not compacted between two tools: {error}");
                self.notify(NoticeKind::Compaction, words);
                Ok(false)
            }
        }
    }

    async fn run_tool(&mut self, call: &ToolCall) -> ToolOutput {
        let specs = self.tools.specs();
        if !specs.iter().any(|spec| spec.name == call.name) {
            let known: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
            let known = match known.is_empty() {
                true => "no tools are available".to_owned(),
                false => format!("the tools are {}", known.join(", ")),
            };
            return ToolOutput::error(format!("unknown tool {}; {known}", call.name));
        }
        self.tools.run(call).await
    }

    /// Answers calls that are not run.
    pub(super) async fn refuse(&mut self, calls: &[ToolCall], reason: &str) -> Result<()> {
        for call in calls {
            self.store_result(call, ToolOutput::error(format!("not run: {reason}"))).await?;
        }
        Ok(())
    }

    async fn store_result(&mut self, call: &ToolCall, output: ToolOutput) -> Result<()> {
        let now = self.now();
        let setup = self.session.setup()?;
        let turn = self.session.turn(&self.pool.settings.ids);
        let whole = output.into_message(call);
        let size = |message: &Message| message.tool_results().map(ToolResult::chars).sum::<u64>();
        let before = size(&whole);
        let message = setup.hooks.run(whole, &turn);
        if size(&message) < before {
            self.pool.layers.action(layer::TOOL_GUARD, "bound");
        }
        self.session.append(message, now).await
    }

    fn is_over_limit(&self) -> bool {
        let view = self.session.view.as_ref();
        view.is_some_and(|view| view.used() > view.ledger().limit())
    }
}
