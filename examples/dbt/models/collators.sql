-- One row per collator with findings: how many, and of which severity at worst.
select
    findings.network,
    findings.chain,
    '0x' || lower(hex(findings.collator)) as collator,
    count(*) as findings,
    count(*) filter (where findings.severity = 'error') as errors,
    bool_and(chains.status = 'verified') as chain_is_verified
from {{ source('audit', 'findings') }} as findings
inner join {{ source('audit', 'chains') }} as chains
    on findings.network = chains.network
    and findings.chain = chains.chain
where findings.collator is not null
group by findings.network, findings.chain, findings.collator
