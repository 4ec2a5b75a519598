"""Known answers, made once with the openssl command: nothing of ours had a part in them.

    openssl genrsa 512 (and 1024)                          PAIR_512, PAIR_1024
    openssl pkeyutl -encrypt                               WRAPPED_512, WRAPPED_1024
    openssl req -x509 -key ... -sha256                     CERTIFICATE
    openssl dgst -sha512 -sign ...                         SIGNATURES, of make_packet()
    openssl enc -K ... -iv 0..., -provider legacy for old  BODIES, of PLAIN

The keys are for tests and protect nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from falconmq.security.rsa import RsaKeyPair
from falconmq.wire.message_properties_header import (
    HASH_MD2,
    HASH_MD4,
    HASH_MD5,
    HASH_SHA1,
    HASH_SHA256,
    HASH_SHA512,
)
from falconmq.wire.simple_blob import CALG_AES_128, CALG_AES_192, CALG_AES_256, CALG_RC2, CALG_RC4

KEY: Final = bytes(range(32))  # the first bytes of it for shorter keys
PLAIN: Final = b"A message body of MSMQ"
PAIR_512: Final = RsaKeyPair(
    int(
        "b393c3f6117fac59e675e006de7759d4969e36a03c64cc00524120ff721d6cf07d0255c00d879f9f"
        "4076a6b37a7ee3957185de828a34360646f3dd0493dbba1b",
        16,
    ),
    65537,
    int(
        "5fba4da446ffc068cc29da1acf4ce05e2b4c7be23f4f9c502f88f88633d6ebd3029d2771d88825c3"
        "1cd53b4d99b6f1bf3d08343e2fd94968ec111498a196a581",
        16,
    ),
    int("dd08219d7104509fc138f70167fc4433f932ed7c043430b71332416eb76c1423", 16),
    int("cffcb594294e9ed10cc02d3df70ac6609982015583e4c0a5bef7b5e4d66745a9", 16),
)
PAIR_1024: Final = RsaKeyPair(
    int(
        "c4589f6399e6f73b41f23aeb78d3ef7fd45e7a229980fe0be7136d753135a5e3ca497c58cc5fc3c2"
        "fea7d589c5140c1f3276c2bed8e43221a02e1c3e8bd95e268a5206d3d40367027677060435b4f981"
        "f0b3da14b2f8dfd58cea5b9c0020288ca416441e1cb450004eacd6b19ff24548614f082d2ac645bf"
        "57314cd77b76b647",
        16,
    ),
    65537,
    int(
        "bf30acc407f0e77d4451e31db7a267ec499755c6ab42f81e0efcd3f0f1e2138f24433a5a1d6882ef"
        "3599a84d6722864b3a907a41ec61088fc5b220bea6df1ad524bb0e26b7d321a07940f269b90f99ba"
        "c39011a96f1977ea984d654536b71a2b7f49d72b73274b5729265b88f8267adcdd740a2655b64bbe"
        "7ade7e2dd6bb4141",
        16,
    ),
    int(
        "fcf8f67705797b87168baf1191d17e9fdc750b15456dc895da89e93c9a3eec93f494df4ccc337915"
        "6bdbf9b888e99e26947bcf8c8183964ea7f2ec42750ca7c5",
        16,
    ),
    int(
        "c6b22c2ded98bd9b8d3a5609dc6e0b106e61935d433bec533d76f403d29f89b03f5a89490a9866ba"
        "aa57ebb4c031c03f32022445850ab5e755d08da785c8ba9b",
        16,
    ),
)
WRAPPED_512: Final = bytes.fromhex(
    "264c4a4836502fef72d42aa366289e7eeb0fa591a5b708a7af216b04f49028258e2b8af31022792736bf"
    "02e516346478fbf15786475c09762f61c5f5c6dd24eb"
)
# the first 5 bytes of KEY
WRAPPED_1024: Final = bytes.fromhex(
    "1fb116232da41a97ac94f0825a309722ec4209c6c9de6f1002359736794544863745ad15200902f79fe3"
    "69765cbfa8303d9f6488b59dc179f0570a42e4f7178eea042484ec084b052136bd87a98f7b82034a4f78"
    "721e5a8324b2bd6736b91aeb7923d44060b5fffd57e310eb7e590491a132ed5905c5e24110252a822f96"
    "5aff"
)
# all of KEY
CERTIFICATE: Final = bytes.fromhex(
    "308201e930820152a003020102020107300d06092a864886f70d01010b0500300f310d300b0603550403"
    "0c04416e6e613020170d3236313131363130303733385a180f32313236313032333130303733385a300f"
    "310d300b06035504030c04416e6e6130819f300d06092a864886f70d010101050003818d003081890281"
    "8100c4589f6399e6f73b41f23aeb78d3ef7fd45e7a229980fe0be7136d753135a5e3ca497c58cc5fc3c2"
    "fea7d589c5140c1f3276c2bed8e43221a02e1c3e8bd95e268a5206d3d40367027677060435b4f981f0b3"
    "da14b2f8dfd58cea5b9c0020288ca416441e1cb450004eacd6b19ff24548614f082d2ac645bf57314cd7"
    "7b76b6470203010001a3533051301d0603551d0e04160414e5eb924848e6fd2a0ae6e9781c45bc763881"
    "eae5301f0603551d23041830168014e5eb924848e6fd2a0ae6e9781c45bc763881eae5300f0603551d13"
    "0101ff040530030101ff300d06092a864886f70d01010b0500038181001f7d5713adffcd801d593ae6d5"
    "7f78928251709bdf1d443522af3f3cf754bcd7683a671ce918efc59ed2170f5f0220a5c860c739c3a051"
    "fa3a9d812db61d3f8f985a2823b8d3cae27f7e94a4be0de04abbffa2e010ba4f188e8e12090518a98746"
    "9519cc1c281d51029cd4f29a7aee8db70e3e5931590beba278732ca5626db5"
)
SIGNATURES: Final[Mapping[int, bytes]] = {
    # openssl has no MD2 any more and names MD4 wrongly (as 1.2.840.113549.2.3): pkeyutl signed both
    HASH_MD2: bytes.fromhex(
        "5d1d233515ceb4d557eabafe97a4df41e916d58df202f9e425116d0c977bdf10751cc5bc4756ce80"
        "4ceccafffe58d287094e029b43b3f2d89fb662f73cd01c297ae8ba063f582f914b0664140fe9c659"
        "9dd081feab70779875849ecd4b75e8853aa58b3700569bdd2d5aed1b395d3dcffbf9f6eb6a4927bd"
        "a111b4af9ea9f388"
    ),
    HASH_MD4: bytes.fromhex(
        "198ca502346e1e7a6704dafdb98225f651ad4f4bcae270fe7904371b65ed502ec806ec5658976c9d"
        "01e3f096bbb21107cd1330a2c899869104d5138a3a605803d17ba7e057e08794944f15bee373e5c1"
        "cd6953d4db0fd20b3db8f343b6b626cefd963f9d993e4a10dc87dc11b493316383be69796745b004"
        "4408f871b3644c9d"
    ),
    HASH_MD5: bytes.fromhex(
        "90b61b3db7f3800ec72559e07333f82a85c7b432f664a9e27297b78c8353fcdcd7a4fcd42a9b273e"
        "8c3c739ba45d769f4b8fadacdfc781f840311aced1b844a9949bbe884db96a4665fabc969e4440c6"
        "89f54985ba6ac5a1147d6d718155490890df9c2fe5c8abb196e99d66b36838f907bcf06830fe947b"
        "08349e7a7c050226"
    ),
    HASH_SHA1: bytes.fromhex(
        "c38dee31fbfa4d188740b306ab88fbc6ecc3206fe2d7a6c8afc00e11561c000a9e4dc0de70d5e1a5"
        "cfc5424affc4c63c64cd8dece6b49fc4e55ddea1c38a51e058366cb7c0f0aa6299efc54bc9abe8da"
        "6076d77141e855079023891b753ea68bb20b9d4191df97490656608086220e117753f116fc59f69d"
        "5a25209549e8402d"
    ),
    HASH_SHA256: bytes.fromhex(
        "539a261ac5804f9b30bc25cc9228b67e2a1075fd1cdf1d56284ef31ae8488dca81d3607b278d73cf"
        "c987dee5ca60e2a19b53c21bca0f3f1f21524e85d0e0e51391f1e3cfbd7f6e49ae4bdb4f75d6de11"
        "cbeaec0f0dee231bcaf37d55a02bcc7ea5bf5446e59db935c75b51ff7652c9e32a0b21a2794cb810"
        "3e6c6cd5885afa2a"
    ),
    HASH_SHA512: bytes.fromhex(
        "b92407f2f9d7086cf273a25e224715f6b24da44d49f00f49d0b23847ca6a35cde677df9c76f21868"
        "6e1a0d75886bbc34d61c4e681cdd533aa1390da5ec8f7ffca8f5d3fc1891e22a3e6394b520b328c4"
        "12b318a8ab3b8a2ca7f09a3a173c65b5044a36eddd6661c449a99ef6fb0559e9c5c730a18a036433"
        "cdd0d70785246116"
    ),
}
BODIES: Final = (  # algorithm, bytes of the key, what it makes of PLAIN
    (CALG_AES_128, 16, "a7f5ddf42effc2c183669ae721e72a2f7e9a72cf1ebb63fc4866065287306fa7"),
    (CALG_AES_192, 24, "9d2a8c31428d791afa298d8aadb326cfe4873755e17269fb09b0ba62c84cf2ac"),
    (CALG_AES_256, 32, "6891c1f2e67a682ba83ad18190169f5c75323a1a519fdb36f429be142ab6618f"),
    (CALG_RC2, 5, "ac7c99762c76abfee3089ac536deb0c0e41eaf93d166497a"),
    (CALG_RC2, 16, "03802cfcd238d7dc35cbbeec4d197e16eb894e830f838e50"),
    (CALG_RC4, 5, "bf3d665697623bf563fce5ab893ceb280bd59ddc5a24"),
    (CALG_RC4, 16, "a8bc2d9c349178ab63fbf5a96aa40a20b551cc0cbfe6"),
)
# A short key, as old computers have: its certificate, and its signature of make_packet().
CERTIFICATE_512: Final = bytes.fromhex(
    "308201623082010ca003020102020108300d06092a864886f70d01010b0500300e310c300a0603550403"
    "0c034f6c643020170d3236313131363130323434305a180f32313236313032333130323434305a300e31"
    "0c300a06035504030c034f6c64305c300d06092a864886f70d0101010500034b003048024100b393c3f6"
    "117fac59e675e006de7759d4969e36a03c64cc00524120ff721d6cf07d0255c00d879f9f4076a6b37a7e"
    "e3957185de828a34360646f3dd0493dbba1b0203010001a3533051301d0603551d0e04160414ffdbdea6"
    "c78f138920921bf0e214ffd270140c7e301f0603551d23041830168014ffdbdea6c78f138920921bf0e2"
    "14ffd270140c7e300f0603551d130101ff040530030101ff300d06092a864886f70d01010b0500034100"
    "5112c49f893de9f9e16e055b6d764d95a0d4251b3fbd9b3017dd36b2a2c94497d5f19af1cd4a5cf032c4"
    "04924bb458e9101d58ac07f8019289c881d61ebabbe6"
)
SIGNATURE_512_SHA256: Final = bytes.fromhex(
    "2674e22f23392e985ce6122ddb1218a64dfc8c134e2e2a9ef6e3aaf20c98d76e087258cd1e1901a2177d"
    "902472e88b96e5a5514b591050e157bdd47241857319"
)
