//! Scenarios of subxt against a node in `instant` mode with --dev. `relay.scale` and `parachain.scale` are the metadata,
//! version 16, from which the interfaces below are generated: that they compile is scenario 7.
//!
//! `subxt-scenarios URL` writes what became of each scenario as one line of JSON: scenario, ok, ms, detail.

use std::error::Error;
use std::future::Future;
use std::time::{Duration, Instant};

use subxt::dynamic::Value;
use subxt::rpcs::rpc_params;
use subxt::rpcs::RpcClient;
use subxt::utils::AccountId32;
use subxt::{OnlineClient, PolkadotConfig};
use subxt_signer::sr25519::dev;

#[subxt::subxt(runtime_metadata_path = "relay.scale")]
mod relay {}

#[subxt::subxt(runtime_metadata_path = "parachain.scale")]
mod parachain {}

type Failure = Box<dyn Error + Send + Sync>;

const PATIENCE: Duration = Duration::from_secs(60);

async fn connect(url: &str, path: &str) -> Result<(OnlineClient<PolkadotConfig>, RpcClient), Failure> {
    let rpc = RpcClient::from_insecure_url(format!("{url}{path}")).await?;
    Ok((OnlineClient::<PolkadotConfig>::from_rpc_client(rpc.clone()).await?, rpc))
}

fn ensure(holds: bool, what: impl Into<String>) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(what.into().into()) }
}

/// 7: what the interfaces were generated from is what the node says
async fn codegen(url: String) -> Result<(), Failure> {
    let (api, _) = connect(&url, "/").await?;
    let at = api.at_current_block().await?;
    ensure(relay::is_codegen_valid_for(at.metadata_ref()), "the relay chain's metadata differs")?;
    let (api, _) = connect(&url, "/2000").await?;
    let at = api.at_current_block().await?;
    ensure(parachain::is_codegen_valid_for(at.metadata_ref()), "the parachain's metadata differs")
}

/// 8: twenty final blocks, each once and in order, with extrinsics and events that decode
async fn blocks(url: String) -> Result<(), Failure> {
    for path in ["/", "/2000"] {
        let (api, rpc) = connect(&url, path).await?;
        let mut stream = api.stream_blocks().await?;
        let first = stream.next().await.ok_or("no block")??.number();
        let _: serde_json::Value = rpc.request("dev_newBlock", rpc_params![serde_json::json!({"count": 20})]).await?;
        for expected in first + 1..=first + 20 {
            let block = stream.next().await.ok_or("no block")??;
            ensure(block.number() == expected, format!("block {} after {}", block.number(), expected - 1))?;
            let at = block.at().await?;
            let extrinsics = at.extrinsics().fetch().await?;
            let mut events = 0;
            for extrinsic in extrinsics.iter() {
                let extrinsic = extrinsic?;
                extrinsic.decode_call_data_fields_unchecked_as::<Value>()?;
                for event in extrinsic.events().await?.iter() {
                    event?.decode_fields_unchecked_as::<Value>()?;
                    events += 1;
                }
            }
            ensure(events > 0, "a block without events")?;
        }
    }
    Ok(())
}

/// 8 and 9: a value, a map in pages, a default
async fn storage(url: String) -> Result<(), Failure> {
    let (api, _) = connect(&url, "/").await?;
    let at = api.at_current_block().await?;
    let accounts = at.storage().entry(relay::storage().system().account())?;
    let mut rows = accounts.iter(()).await?;
    let mut count = 0;
    while let Some(row) = rows.next().await {
        let row = row?;
        row.key()?.decode()?;
        row.value().decode()?;
        count += 1;
    }
    ensure(count > 10, format!("{count} accounts"))?;
    let nobody = AccountId32([7; 32]);
    ensure(accounts.fetch((nobody,)).await?.decode()?.data.free == 0, "nobody owns something")?;
    ensure(accounts.default_value().ok_or("no default")?.decode()?.data.free == 0, "the default owns something")?;
    let number = at.storage().fetch(relay::storage().system().number(), ()).await?.decode()?;
    ensure(u64::from(number) == at.block_number() as u64, format!("System.Number is {number}"))
}

/// 8 and 12: Alice pays Bob to finality on both chains
async fn transfer(url: String) -> Result<(), Failure> {
    let (api, _) = connect(&url, "/").await?;
    let at = api.at_current_block().await?;
    let tx = relay::transactions().balances().transfer_keep_alive(dev::bob().public_key().into(), 4321);
    let events = at
        .transactions()
        .sign_and_submit_then_watch_default(&tx, &dev::alice())
        .await?
        .wait_for_finalized_success()
        .await?;
    let found = events.find_first::<relay::balances::events::Transfer>().ok_or("no Transfer")??;
    ensure(found.amount == 4321, format!("{} were paid", found.amount))?;
    let (api, _) = connect(&url, "/2000").await?;
    let at = api.at_current_block().await?;
    let tx = parachain::transactions().balances().transfer_keep_alive(dev::bob().public_key().into(), 1234);
    let events = at
        .transactions()
        .sign_and_submit_then_watch_default(&tx, &dev::alice())
        .await?
        .wait_for_finalized_success()
        .await?;
    let found = events.find_first::<parachain::balances::events::Transfer>().ok_or("no Transfer")??;
    ensure(found.amount == 1234, format!("{} were paid", found.amount))
}

async fn told<F>(name: &str, scenario: F)
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let began = Instant::now();
    let task = tokio::spawn(tokio::time::timeout(PATIENCE, scenario));
    let detail = match task.await {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(error))) => Some(format!("{error}: {error:?}")),
        Ok(Err(_)) => Some("not done in a minute".into()),
        Err(error) => Some(error.to_string()),
    };
    let line = serde_json::json!({
        "scenario": name, "ok": detail.is_none(), "ms": began.elapsed().as_millis() as u64, "detail": detail,
    });
    println!("{line}");
}

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).expect("a URL");
    told("codegen", codegen(url.clone())).await;
    told("blocks", blocks(url.clone())).await;
    told("storage", storage(url.clone())).await;
    told("transfer", transfer(url)).await;
}
