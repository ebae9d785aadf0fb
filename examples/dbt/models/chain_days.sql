-- One row per chain and day: the proofs of its valid blocks, and the waste among them.
with measured as (
    select
        network, chain, day,
        count(*) as blocks,
        sum(proof_bytes) as proof_bytes,
        max(proof_bytes) as max_proof_bytes
    from {{ source('audit', 'block_measures') }}
    where verdict is null and judged
    group by network, chain, day
),

wasted as (
    select network, chain, day, sum(bytes) as repeated_bytes
    from {{ source('audit', 'waste') }}
    where cause = 'repeated'
    group by network, chain, day
)

select
    measured.network,
    measured.chain,
    measured.day,
    measured.blocks,
    measured.proof_bytes::bigint as proof_bytes,
    measured.max_proof_bytes,
    coalesce(wasted.repeated_bytes, 0)::bigint as repeated_bytes
from measured
left join wasted
    on measured.network = wasted.network
    and measured.chain = wasted.chain
    and measured.day is not distinct from wasted.day
