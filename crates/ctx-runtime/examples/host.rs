//! A host with its own model: `cargo run -p ctx-runtime --example host`, then type.

#![allow(clippy::print_stdout)] // The answers are this program's output.

use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{Message, ModelCard, NoTools, Reply, Result, Role, Tokens, model_fn};
use ctx_runtime::{NoListener, Runtime};
use ctx_session::{Home, key::SessionKey};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let card = ModelCard::new("my/parrot", Tokens(32_000));
    let parrot = model_fn(card, |request| async move {
        let heard = request.messages.last().map(|message| message.plain_text()).unwrap_or_default();
        Ok(Reply::from(Message::text(Role::Assistant, format!("You said: {heard}"))))
    });
    let runtime =
        Runtime::builder(Home::from_env()?, Config::default()).model(Arc::new(parrot)).build()?;
    let key: SessionKey = "agent:parrot:main".parse()?;
    for line in std::io::stdin().lines().map_while(|line| line.ok()) {
        let turn = runtime.turn(&key, line, &NoTools, &mut NoListener).await?;
        println!("{}", turn.answer.unwrap_or_default());
    }
    runtime.close(&key).await
}
