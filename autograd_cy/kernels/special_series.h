/* Coefficients of the special functions in special.h. The module that defines AG_WANTS_SERIES has the one copy (ops/codegen.py);
 * the others reach it through K.series.
 *
 * i0, i1, near: Taylor's series (NIST Digital Library of Mathematical Functions, 10.25.2). ndtri: M. Wichura's rational functions
 * (algorithm AS 241, Applied Statistics 37, 1988), above and below the line. uniform: DLMF 8.12.12. All others are interpolated in Chebyshev's nodes on [-1, 1]
 * with 50 digits, to 2^-53 and better of the largest value, and written as polynomials, the constant first; special.h says of what.
 */
#ifndef AG_SPECIAL_SERIES_H
#define AG_SPECIAL_SERIES_H

typedef struct {
    double i0_near[24], i0_far[24], i0_far_f32[8], i1_near[24], i1_far[24], i1_far_f32[8], erfcx[24], erfcx_f32[14],
        j0_near[18], j1_near[18], y0_near[18], y1_near[18], p0[14], q0[14], p1[14], q1[14], k0_near[12], k1_near[12],
        k0_far[28], k1_far[28], ai_mid[32], aip_mid[32], ai_right[28], aip_right[28], ai_p[18], ai_q[18], aip_p[18],
        aip_q[18], ndtri_above[8], ndtri_below[8], ndtri_tail_above[8], ndtri_tail_below[8], ndtri_far_above[8],
        ndtri_far_below[8], lgamma1p[22], stirling[18], uniform[68];
} AG_Series;

#ifdef AG_WANTS_SERIES
static const AG_Series ag_all_series = {
    {   /* i0_near */
        0x1p+0, 0x1p+0, 0x1p-2, 0x1.c71c71c71c71cp-6, 0x1.c71c71c71c71cp-10, 0x1.23456789abcdfp-14, 0x1.02e85c0898b71p-19,
        0x1.522a43f65486ap-25, 0x1.522a43f65486ap-31, 0x1.0b313289be0b9p-37, 0x1.5601885e63e5dp-44, 0x1.69ca9cf3b7f54p-51,
        0x1.4197a7f5154bcp-58, 0x1.e725594ee52e9p-66, 0x1.3e22d70ef3b5fp-73, 0x1.69f7da8510bcdp-81, 0x1.69f7da8510bcdp-89,
        0x1.40a2dc2460523p-97, 0x1.faaf2fa1c79e5p-106, 0x1.674f8e46c208cp-114, 0x1.cbeaf38dc529ep-123, 0x1.0afb53e9cec0bp-131,
        0x1.1a6d4e307528ep-140, 0x1.1159d2b18fe1fp-149},
    {   /* i0_far */
        0x1.9bd428ad249a4p-2, 0x1.b87969bb93a83p-9, 0x1.1daa72b5d039cp-13, 0x1.75e5ee771fd60p-17, 0x1.8e513c2bfae36p-20,
        0x1.3f4995dbe4f87p-22, 0x1.7d0d0fd7eab30p-24, 0x1.51d52cf1f3dbap-25, 0x1.72810658c772dp-26, 0x1.02e07170502e1p-27,
        -0x1.d6a8c994305b2p-28, -0x1.c9e041792fa5ep-27, -0x1.5a47a6d607b5cp-28, 0x1.f81afa91ccd85p-28, 0x1.c2ebca41f03a0p-28,
        -0x1.aec721e953251p-29, -0x1.3a8e6102de4c3p-28, 0x1.2fb291e5a3883p-30, 0x1.2e1e20030b330p-29, -0x1.3425a80700001p-32,
        -0x1.6cf511c32f25fp-31, 0x1.3f20f0ade8c5ep-35, 0x1.9c48e41181cedp-34, 0},
    {   /* i0_far_f32 */
        0x1.9bd428acb326ap-2, 0x1.b87989a83110ep-9, 0x1.1dab087f9e7f3p-13, 0x1.74dca07f960bep-17, 0x1.8c3de69f22f56p-20,
        0x1.8569280d6eaf0p-22, 0x1.d2c64a9220c52p-24, 0},
    {   /* i1_near */
        0x1p-1, 0x1p-2, 0x1.5555555555555p-5, 0x1.c71c71c71c71cp-9, 0x1.6c16c16c16c17p-13, 0x1.845c8a0ce5129p-18,
        0x1.27e4fb7789f5cp-23, 0x1.522a43f65486ap-29, 0x1.2c9758daf5cd0p-35, 0x1.ab81ea75fcdf4p-42, 0x1.f17697cf1cf13p-49,
        0x1.e2637bef9ff1ap-56, 0x1.8bce58901a35ep-63, 0x1.165e7c2d153f3p-70, 0x1.53585cdcbfb10p-78, 0x1.69f7da8510bcdp-86,
        0x1.54ad09e6a6575p-94, 0x1.1d028acb00491p-102, 0x1.aaae78f4066a7p-111, 0x1.1f72d8389b3a3p-119, 0x1.5e69de22df5cep-128,
        0x1.84564b82a1184p-137, 0x1.88f11edf3ed4dp-146, 0x1.6c77c3976a829p-155},
    {   /* i1_far */
        0x1.8ebe783a84030p-2, -0x1.3f796198ee5f1p-7, -0x1.cbc54df1d5d4ep-13, -0x1.f89c230b20f03p-17, -0x1.ec8e123ca1facp-20,
        -0x1.76136f1bbc2a4p-22, -0x1.ad8b3713c777dp-24, -0x1.728032d434e00p-25, -0x1.91e131e10b905p-26, -0x1.20efe3a72ba5cp-27,
        0x1.d60b615bb2205p-28, 0x1.df9ca0f4cdb34p-27, 0x1.8062bbadff072p-28, -0x1.ff9401cc9b775p-28, -0x1.dff091567d659p-28,
        0x1.a842f8684cbcfp-29, 0x1.4a97115732d33p-28, -0x1.233ad26fb3318p-30, -0x1.3bb356180a85cp-29, 0x1.21a4885085e0dp-32,
        0x1.7c4328674533dp-31, -0x1.2811fb67a1f15p-35, -0x1.ace3054e58a55p-34, 0},
    {   /* i1_far_f32 */
        0x1.8ebe783b189bbp-2, -0x1.3f796a9156c80p-7, -0x1.cbc609131f66dp-13, -0x1.f77314fc4b601p-17, -0x1.ea14830348bd1p-20,
        -0x1.c415394bb4c6dp-22, -0x1.0790b9ad5de0bp-23, 0},
    {   /* erfcx */
        0x1.3ccda0b5d5dc2p+0, -0x1.1f367683f8968p-3, 0x1.d5f29481627a0p-9, 0x1.510169d093c20p-4, -0x1.bda9309a3586dp-4,
        0x1.7a14188ae1888p-4, -0x1.e0d0fa6c16f6ep-5, 0x1.d0b003703712dp-6, -0x1.3f603c7e65b05p-7, 0x1.cc3a13da4f1c3p-10,
        0x1.33fb5a5e6be47p-12, -0x1.303ffbf9f583dp-12, 0x1.b13e1400867e8p-15, 0x1.7799dc4804038p-16, -0x1.7fcc15bc19bb3p-17,
        -0x1.06de5e670ea88p-20, 0x1.d39c1bc43bf65p-20, -0x1.b4c1a2c16bc2bp-25, -0x1.0ae6c5c0eae19p-22, 0x1.42d3d5a7632a5p-26,
        0x1.12b34114777d5p-25, -0x1.0cb7991681c29p-29, -0x1.6884bffcb2275p-29, 0},
    {   /* erfcx_f32 */
        0x1.3ccda0b2609cbp+0, -0x1.1f367e887a9a8p-3, 0x1.d5f5423a4c280p-9, 0x1.51032d2fedcf0p-4, -0x1.bdaa8cdf57cfep-4,
        0x1.7a05e2d1e08bcp-4, -0x1.e0c049f57cee8p-5, 0x1.d1750a73b1f9fp-6, -0x1.40256e773fca2p-7, 0x1.b75490ab353a9p-10,
        0x1.5a34a6d48cc9fp-12, -0x1.d601c320c891fp-13, 0x1.71e1efca8b1a9p-16, 0},
    {   /* j0_near */
        0x1.776fc5f84e280p-5, 0x1.dc5071f1209f4p-1, -0x1.4c042a76a3d9ap-1, -0x1.9dbdd0f268edep-1, 0x1.09d33c82734c7p+0,
        -0x1.03d2da095b4e5p-1, 0x1.2afc33916d950p-3, -0x1.d27f3cd0c2e4dp-6, 0x1.09f3448afe768p-8, -0x1.d11773b361daap-12,
        0x1.42bc90333e426p-15, -0x1.6cc5264a684bfp-19, 0x1.56a7a33167081p-23, -0x1.0ff8a9ab93d9ap-27, 0x1.71d0a2052d9dcp-32,
        -0x1.b3bee53ee3284p-37, 0x1.c2c89ea282aaap-42, -0x1.9a167d709915cp-47},
    {   /* j1_near */
        -0x1.dc5071f1209f4p-5, 0x1.4c042a76a3d9ap-4, 0x1.364e5cb5ceb27p-3, -0x1.09d33c82734c7p-2, 0x1.44c7908bb221ep-3,
        -0x1.c07a4d5a245fdp-5, 0x1.982f5536aa883p-7, -0x1.09f3448afe526p-9, 0x1.059d3114e70f5p-12, -0x1.936bb4404efecp-16,
        0x1.f58f14a64570ep-20, -0x1.00fdba22b21dcp-23, 0x1.b9f413c37fba1p-28, -0x1.439726e5a9d29p-32, 0x1.9882e6309407cp-37,
        -0x1.c153468a5a5c9p-42, 0x1.b3c9bd267e611p-47, -0x1.755818284e09fp-52},
    {   /* y0_near */
        -0x1.876cb72f1c7ebp-2, -0x1.a828bfbfdc936p-1, 0x1.a5a81d661f788p+0, 0x1.272bb3b608b42p-3, -0x1.13da2b14a486ep+0,
        0x1.5827981135a27p-1, -0x1.c06cc647f6a9dp-3, 0x1.7bd6bf2ce921ap-5, -0x1.cc70601236723p-8, 0x1.a6a8c6c9838dap-11,
        -0x1.31537c5c91ee5p-14, 0x1.651b8eda0095dp-18, -0x1.5995ab83d71d2p-22, 0x1.1998aadbcc485p-26, -0x1.880052e0f4585p-31,
        0x1.d7ca88247e650p-36, -0x1.f1a7711576130p-41, 0x1.ccd0bf3d9ea0fp-46},
    {   /* y1_near */
        0x1.21d516f81acf6p-4, -0x1.f26fddceafd0ep-3, 0x1.7edab31507d03p-6, 0x1.e16d7a1d07b70p-3, -0x1.923952d7c42a6p-3,
        0x1.41bb6917b15dbp-4, -0x1.4198f92a31f29p-6, 0x1.c097bb98fdbc4p-9, -0x1.d1604f9ccaf30p-12, 0x1.76c164b8551ecp-15,
        -0x1.e35169de28d6fp-19, 0x1.ff34fc77196b8p-23, -0x1.c3f1d9451cc62p-27, 0x1.532f686d70cf2p-31, -0x1.b5d3615d1cb65p-36,
        0x1.eb63695336cb2p-41, -0x1.e58358b5996e3p-46, 0x1.a7116c73adf7ap-51},
    {   /* p0 */
        0x1.ffb8dd328503dp-1, -0x1.193600c1deb33p-11, 0x1.9be00160d9865p-18, -0x1.b8d2d6f568b1dp-23, 0x1.b7ef13a07a483p-27,
        -0x1.4d2f3c6bcc8f1p-30, 0x1.54dc6d1e48781p-33, -0x1.b5bdbb22bf8c7p-36, 0x1.50dad9b31dc98p-38, -0x1.2b66a98a8eadep-40,
        0x1.143405810de71p-42, -0x1.20fc72b9a06b6p-44, 0x1.2cca86c6338d9p-45, -0x1.a9240bf60d14bp-47},
    {   /* q0 */
        -0x1.fdb5c0b2f3d5cp-7, 0x1.1e9a6138feec1p-14, -0x1.8c843528063aap-20, 0x1.3135a899a7d66p-24, -0x1.858d1fd8f9301p-28,
        0x1.61a576ba7257dp-31, -0x1.a07cd08accc3cp-34, 0x1.2b957936e62f7p-36, -0x1.fb5d5dbfbf76bp-39, 0x1.e9303de9288dfp-41,
        -0x1.d86bdfa9cff32p-43, 0x1.033dea6365de0p-44, -0x1.33cdb710c05d6p-45, 0x1.cab223df72976p-47},
    {   /* p1 */
        0x1.003b716033732p+0, 0x1.d73b8ea3c1248p-11, -0x1.0b1541bfbbd42p-17, 0x1.07762640b132fp-22, -0x1.f96172d037183p-27,
        0x1.75eb02dd757b9p-30, -0x1.78b760be6538cp-33, 0x1.de943b9058a10p-36, -0x1.6d4b96ca1b17cp-38, 0x1.42a2120f95923p-40,
        -0x1.2883a97c0530ap-42, 0x1.35262497b5421p-44, -0x1.3f5b1671b84fbp-45, 0x1.c1ff43803bc35p-47},
    {   /* q1 */
        0x1.7f323705062fbp-5, -0x1.938da0a0a6a1fp-14, 0x1.e8e009ca48cc5p-20, -0x1.64231273efe05p-24, 0x1.b9302eecdd8b1p-28,
        -0x1.8922fa1341065p-31, 0x1.c927792add62bp-34, -0x1.45d1fafbde408p-36, 0x1.11f1ec5ba5e4bp-38, -0x1.06a7aef913480p-40,
        0x1.f9ccefc5a2172p-43, -0x1.14bb49dd9cee7p-44, 0x1.46123a8bbc898p-45, -0x1.e48d4f144b8b2p-47},
    {   /* k0_near */
        0x1.9055e0acc3f54p-1, 0x1.8fff17f98db1cp-1, 0x1.f6ee0decfbda8p-4, 0x1.fda3752a9236cp-8, 0x1.16c5f67976de6p-12,
        0x1.7dc25d01b8e5cp-18, 0x1.660d44c00a735p-24, 0x1.e8d5bed36cb07p-31, 0x1.fb888bfbc108fp-38, 0x1.9e3fd4b257a3cp-45,
        0x1.10ce9895e1054p-52, 0x1.2802de358a324p-60},
    {   /* k1_near */
        -0x1.fe2890c6da2a2p-2, -0x1.af79f608a8f1cp-3, -0x1.5f023344d577ap-6, -0x1.075f7adebb203p-10, -0x1.c9b0e44a4abb5p-16,
        -0x1.03f05a6034a5dp-21, -0x1.a0920d02edbaap-28, -0x1.f06e951a011bdp-35, -0x1.c94c11f6a4897p-42, -0x1.4f6ca7c5a0803p-49,
        -0x1.9124cbccce231p-57, -0x1.8e986dfa97fbap-65},
    {   /* k0_far */
        0x1.37f5dd35f91a9p+0, -0x1.fd1328181db4dp-6, 0x1.8d86f6465d9eep-9, -0x1.f7130688eadc6p-12, 0x1.a19652e7f5edbp-14,
        -0x1.9efce52880730p-16, 0x1.d5e9a51ccbb9fp-18, -0x1.26183d953a6afp-19, 0x1.8ec858b335825p-21, -0x1.20bfdaea22865p-22,
        0x1.b9f2058bf64cep-24, -0x1.629c536cb6521p-25, 0x1.2818234ea3bcbp-26, -0x1.0035cdf0ef12cp-27, 0x1.d46af8d3fc39fp-29,
        -0x1.b86e54add1036p-30, 0x1.4019e990b2162p-31, -0x1.e3266ef0bb889p-33, 0x1.c242e90f27c97p-32, -0x1.3c02d5ce8a2aep-32,
        -0x1.da7a644a6d935p-33, 0x1.95e603f236b97p-33, 0x1.bf3378c06f60dp-33, -0x1.4bcb5f5feba87p-33, -0x1.647f0a170f74dp-34,
        0x1.026e37fa64a05p-34, 0x1.53b8c05a2aa8ep-36, -0x1.c9db231f71636p-37},
    {   /* k1_far */
        0x1.5cf785b4a0203p+0, 0x1.a7520dfb3f9a2p-4, -0x1.6cd23ac7d419ap-8, 0x1.81bb397938754p-11, -0x1.24bdedb36c3cep-13,
        0x1.1383aa1c3d9cap-15, -0x1.2cb02cc4ead48p-17, 0x1.6e6b73252c97fp-19, -0x1.e6caa6d4a6cf0p-21, 0x1.5ad00b65bf2f6p-22,
        -0x1.05ee4e61dd64fp-23, 0x1.9fc0a6b181763p-25, -0x1.57f7aa821c9d2p-26, 0x1.274c5d94e986bp-27, -0x1.0bbc9528601f6p-28,
        0x1.f3e732c989015p-30, -0x1.6e64af5bee819p-31, 0x1.173a9fb280050p-32, -0x1.ed9b2c0a1cd9ep-32, 0x1.57f23972c8075p-32,
        0x1.fc4436791610fp-33, -0x1.b33336e33bcc1p-33, -0x1.e31eb99e99744p-33, 0x1.659b6f36c0289p-33, 0x1.8069b595bb4bfp-34,
        -0x1.1632ed7578f27p-34, -0x1.6f42d86927ef2p-36, 0x1.edf05a72ac13bp-37},
    {   /* ai_mid */
        0x1.1235093d83da5p-1, -0x1.f369859b29935p-6, -0x1.347baa653455ap+1, 0x1.3a55e6f605d24p+1, 0x1.bd2ac9e55a084p+0,
        -0x1.16f39a2ede3a0p+2, 0x1.b040fcc2d6215p+0, 0x1.06a3de66f2937p+1, -0x1.2fb9446a92eacp+1, 0x1.81bd9cbd83bcdp-2,
        0x1.b4a85973573e8p-1, -0x1.39fb540f97f38p-1, 0x1.35b76c06ef869p-6, 0x1.76c23db9c840ep-3, -0x1.7877726f058d0p-4,
        -0x1.62ac1b5d1ee7dp-8, 0x1.89c0b6cdc0476p-6, -0x1.251738c553f7cp-7, -0x1.36788a414c4b3p-10, 0x1.1788e25b315b6p-9,
        -0x1.3e808259bba46p-11, -0x1.fedc41714988bp-14, 0x1.1e415996ccaf5p-13, -0x1.fc5448d742fd3p-16, -0x1.1356e1abd989ep-17,
        0x1.bdcde9bd617a9p-18, -0x1.2fcec6b863affp-20, -0x1.cf1287a556945p-22, 0x1.08bf0ab4d1e2dp-22, -0x1.4c27bc376bb35p-26,
        -0x1.101d4b6a5a4d1p-26, 0x1.0112b32b449f9p-28},
    {   /* aip_mid */
        -0x1.4cf103bcc6623p-7, -0x1.9b4f8ddc45c78p+0, 0x1.3a55e6f605d23p+1, 0x1.28c73143915c6p+1, -0x1.d0eb564e1d085p+2,
        0x1.b040fcc2d5d31p+1, 0x1.3269d8cd6ff8ep+2, -0x1.94f705e36af62p+2, 0x1.214e358e3aaa5p+0, 0x1.6be19fdfbe2eap+1,
        -0x1.1fd10d0ebff2bp+1, 0x1.35b76c6b953dcp-4, 0x1.95fd183f87c9dp-1, -0x1.b736060f76bddp-2, -0x1.bb572883af96cp-6,
        0x1.06807e3dc997fp-3, -0x1.9f36316ac7165p-5, -0x1.d1b65a6ccbfb2p-8, 0x1.ba9866be53ea8p-7, -0x1.0967eeb9cf641p-8,
        -0x1.bef856377c27dp-11, 0x1.0653ccedee80fp-10, -0x1.e74bdd7db77afp-13, -0x1.12166082c8dfcp-14, 0x1.d0d75cb24f5a0p-15,
        -0x1.509a7cee8b452p-17, -0x1.06633c8f8638dp-18, 0x1.43b31de586075p-19, -0x1.7e9a7ac800ea8p-23, -0x1.9a45414ac6731p-23,
        0x1.41b519d40bd39p-25, 0x1.2b35eac38f3ecp-28},
    {   /* ai_right */
        0x1.f7a4cf9aff946p-1, -0x1.deda93a68b49dp-7, 0x1.7276586a1b055p-10, -0x1.ddd739cba8b05p-13, 0x1.968a3b3efd1c0p-15,
        -0x1.9e8b68a2e46e9p-17, 0x1.e18cf8b42156cp-19, -0x1.34f9d2a87d32cp-20, 0x1.ad3161c99396bp-22, -0x1.3e1ba5d36be27p-23,
        0x1.f202aa8474e49p-25, -0x1.9872077f6e612p-26, 0x1.5c277ce3992b0p-27, -0x1.33491e496daf7p-28, 0x1.211764f12d1bep-29,
        -0x1.176d1e077975ap-30, 0x1.736115a6ffaf6p-32, -0x1.ec42b6371ee18p-34, 0x1.5d15c2e5c50a0p-32, -0x1.0167147beb12fp-32,
        -0x1.a880ff55d4a07p-33, 0x1.6c7300bfbf316p-33, 0x1.7a6fc0f30c905p-33, -0x1.1f11c1d274facp-33, -0x1.315636f3b79f1p-34,
        0x1.c2b3d8f3c6225p-35, 0x1.1ca5dcce87e89p-36, -0x1.877f713d8acbap-37},
    {   /* aip_right */
        0x1.05f57e9290b56p+0, 0x1.5b8e3cb3fa1c5p-6, -0x1.c4d93c10bf147p-10, 0x1.13a8be86e79b7p-12, -0x1.c7723be1310b3p-15,
        0x1.c81cf4614f48ap-17, -0x1.05afb56d52356p-18, 0x1.4cd13c4f36ce5p-20, -0x1.cb27bc52d2fa2p-22, 0x1.5278f6dddafaep-23,
        -0x1.07c690b709ca4p-24, 0x1.af14a262c445ep-26, -0x1.6e51889a01e8cp-27, 0x1.42777e39c06f7p-28, -0x1.2e7ac211a6229p-29,
        0x1.239fa4fb65bc2p-30, -0x1.85a0a7d879036p-32, 0x1.04566aed14ce3p-33, -0x1.67d489eed9dd5p-32, 0x1.08b8e276d06b5p-32,
        0x1.b2bf5fb6fac48p-33, -0x1.7545577a1cef1p-33, -0x1.8471f69c6a885p-33, 0x1.266f7789423a2p-33, 0x1.39408473ee903p-34,
        -0x1.ce1e42e56d8d5p-35, -0x1.244335b354748p-36, 0x1.91aff787a726ep-37},
    {   /* ai_p */
        0x1.ffac9a04d8880p-1, -0x1.45946c3d8975ep-11, 0x1.de715dd5edbb2p-17, -0x1.e61c821cef49cp-21, 0x1.af4e846f6349cp-24,
        -0x1.1197c44a57f9ap-26, 0x1.bd83c05e6a496p-29, -0x1.b42dc891d5ec6p-31, 0x1.ecfb3c8e8060ap-33, -0x1.384a0737a7280p-34,
        0x1.9f56318d323b9p-36, -0x1.2874065b6f15bp-37, 0x1.605700f5e6bd6p-38, -0x1.676e4ad8ecebep-39, -0x1.1440154f43bfdp-41,
        0x1.11db72e9474e7p-41, 0x1.610f3f0221a77p-41, -0x1.a41352b6e3ddep-42},
    {   /* ai_q */
        0x1.a6c2877a8e0dep-7, -0x1.dd77c0c57e766p-14, 0x1.474bb48161e44p-18, -0x1.d40629bae8962p-22, 0x1.0417ce1819701p-24,
        -0x1.847dc4eb6fa4dp-27, 0x1.66a6ffcec44f3p-29, -0x1.8463bc88b027bp-31, 0x1.ddc44bfaf85a4p-33, -0x1.45774e0a7e4b4p-34,
        0x1.c28bb3f4c549bp-36, -0x1.4bf67942e4904p-37, 0x1.d7a1252213135p-38, -0x1.03b576bd40f02p-38, -0x1.1d1d98c0e987cp-40,
        0x1.029ba7adc8819p-40, 0x1.14fd7b0948691p-40, -0x1.558e0d8763eb5p-41},
    {   /* aip_p */
        0x1.003161763e7efp+0, 0x1.824cb9745b6e4p-11, -0x1.059150158f951p-16, 0x1.02d7a34647bbep-20, -0x1.c5727da322e61p-24,
        0x1.1d757b87d4a30p-26, -0x1.ce813c4430b40p-29, 0x1.c330d9832caa8p-31, -0x1.fc8fd1365c17fp-33, 0x1.4177ba263b5d4p-34,
        -0x1.aaf8d1b4e9f8ep-36, 0x1.306f819d298a6p-37, -0x1.688b321f5efe0p-38, 0x1.6f346fcbc1174p-39, 0x1.17d4747ce282cp-41,
        -0x1.1626583a72b08p-41, -0x1.67fe02c7e49c2p-41, 0x1.ac0940c93f03bp-42},
    {   /* aip_q */
        -0x1.287a9902d8e4ep-6, 0x1.0be7ff1b378e8p-13, -0x1.5fe96bcf5ed0ep-18, 0x1.ee5e521805e74p-22, -0x1.10195118ae85bp-24,
        0x1.93f9932eee379p-27, -0x1.736643093bb50p-29, 0x1.90f8535db53afp-31, -0x1.ec12ba2c8de35p-33, 0x1.4e92b4f708c58p-34,
        -0x1.ceb1d380ce0c6p-36, 0x1.54a7b8de8764bp-37, -0x1.e20bfaa61664fp-38, 0x1.090adc62e25a6p-38, 0x1.214be6020af4bp-40,
        -0x1.06ba3b4819d52p-40, -0x1.1a40c28731f37p-40, 0x1.5bd399e44dd2cp-41},
    {   /* ndtri_above */
        0x1.b18d91e9eef75p+1, 0x1.0a4888b1a436ep+7, 0x1.ece5d2213c0ccp+10, 0x1.ad1d8cd4ee71dp+13, 0x1.66c3e869b752ap+15,
        0x1.06c1c55b78f20p+16, 0x1.052d26b2e45e4p+15, 0x1.39a296f7d925ep+11},
    {   /* ndtri_below */
        0x1p+0, 0x1.5281b386e1ab5p+5, 0x1.5797efdc8b3f7p+9, 0x1.512322e75c89fp+12, 0x1.4b772d5d65266p+14, 0x1.3317caa64f4bep+15,
        0x1.c0e457cb1ae76p+14, 0x1.46a7eca984b69p+12},
    {   /* ndtri_tail_above */
        0x1.6c665fde9526ap+0, 0x1.2857748cab19bp+2, 0x1.713f71462256ap+2, 0x1.d2ecb1a3d02c4p+1, 0x1.453cc085375b2p+0,
        0x1.ef2abb9b85c37p-3, 0x1.744eb6c45ec67p-6, 0x1.9615ac0b7ace9p-11},
    {   /* ndtri_tail_below */
        0x1p+0, 0x1.06cefbb46a449p+1, 0x1.ad278e6526633p+0, 0x1.61292f23385c9p-1, 0x1.2f5123394f040p-3, 0x1.f207a7eab17bfp-7,
        0x1.1f18cbfdf2728p-11, 0x1.20d3f686439e4p-30},
    {   /* ndtri_far_above */
        0x1.aa1b1c13ee526p+2, 0x1.5daea6e875003p+2, 0x1.c8ea6461fa445p+0, 0x1.2fad9315255cfp-2, 0x1.b2b41193b4ee7p-6,
        0x1.45c1908425345p-10, 0x1.c6ec6cc59e02ap-16, 0x1.afb74d693bf93p-23},
    {   /* ndtri_far_below */
        0x1p+0, 0x1.331d34fc7d77fp-1, 0x1.186eb183443fbp-3, 0x1.e76f93215462ap-7, 0x1.9c8bc979dc5d7p-11, 0x1.35c2c496374bfp-16,
        0x1.31446f740b9e0p-23, 0x1.269bff1f8c190p-49},
    {   /* lgamma1p */
        -0x1.75a32d4d2e4d9p-3, 0x1.44a55376c2b1ap-2, -0x1.d5c3aa1a14c18p-5, 0x1.d7998e5dd4b04p-7, -0x1.0e538406a1ae6p-8,
        0x1.4c678a620dccep-10, -0x1.aa673559e691cp-12, 0x1.1937974b3e2c6p-13, -0x1.7a3fde00aa3f1p-15, 0x1.0211d564f92b6p-16,
        -0x1.640c95f237e83p-18, 0x1.ef8e9853cc165p-20, -0x1.5b88ebfd45358p-21, 0x1.ea133e0942cbap-23, -0x1.5837fa8d58717p-24,
        0x1.e9dcf502df43bp-26, -0x1.7b4d7f6e291fap-27, 0x1.102f2242e638ap-28, -0x1.b0e62fc6606d3p-31, 0x1.35d72d25f5b95p-32,
        -0x1.967606bc1f069p-32, 0x1.272c6f9aab7c0p-33},
    {   /* stirling */
        0x1.541b39cea2084p-4, 0x1.96fbd7377b34bp-11, -0x1.7984c0b0a3093p-11, 0x1.5833168c3f42ep-12, -0x1.c5f370c2298f0p-14,
        0x1.ea15d130d597ep-16, -0x1.f5522ec297150p-18, 0x1.11b2563a9eeecp-19, -0x1.318fb9b255d3cp-21, 0x1.4c1b077dc4777p-23,
        -0x1.782963366fc4fp-25, 0x1.b53282784d4c2p-27, -0x1.ee45e18cf9652p-29, 0x1.2413918b0af20p-30, -0x1.3b9151d08b729p-32,
        0x1.5cfb07b003fa2p-34, -0x1.6b1b8734aec98p-35, 0x1.c1b4b57663fccp-37},
    {   /* uniform */
        -0x1.5555555555555p-2, 0x1.5555555555555p-4, -0x1.e573ac901e574p-7, 0x1.2f684bda12f68p-10, 0x1.71de3a556c734p-12,
        -0x1.76e06fec7273bp-13, 0x1.48c5892f7cd83p-15, -0x1.255370652afc1p-19, -0x1.f1b22f594c6b5p-20, 0x1.bd6d21e4b4109p-21,
        -0x1.7b5f9a2d0465cp-23, 0x1.ccf5ceb7f0d9fp-28, 0x1.6097d55c37c1cp-27, -0x1.2d2197c7a2faap-28, 0x1.f6e66d24d5c8ap-31,
        -0x1.c0d9b6edf2b0bp-36, -0x1.e573ac901e574p-10, -0x1.c71c71c71c71cp-9, 0x1.5ac056b015ac0p-9, -0x1.0394f6f09e723p-10,
        0x1.af83440e53dbcp-13, -0x1.af83440e53dbcp-22, -0x1.2fa4ae89e5af0p-16, 0x1.00a9cabd6b83ep-17, -0x1.b0bdfcc629cbap-20,
        0x1.3f59230a8357cp-28, 0x1.280f2cde3f847p-23, -0x1.ee23d0cba8aeep-25, 0x1.9aa7a30de114cp-27, -0x1.349fbca3a377bp-36,
        0x1.0ee643b990ee6p-8, -0x1.5f7268edab4c8p-9, 0x1.948b0fcd6e9e0p-11, 0x1.0db20a88f4696p-19, -0x1.c253efaa1a932p-14,
        0x1.bbf43daf4fe53p-15, -0x1.ac2d05890f2c3p-17, 0x1.26154ae39151dp-25, 0x1.7058929663937p-20, -0x1.522cb05171911p-21,
        0x1.32ac81c15d3d7p-23, -0x1.c24bd0e740a6cp-33, 0x1.547d93b34e2b6p-11, 0x1.e13ce465fa859p-13, -0x1.ebfb188b7ca00p-12,
        0x1.18b9b5bf2d984p-12, -0x1.3d2a3a29b5d9dp-14, -0x1.0152a1871f27ap-22, 0x1.73df462204ef4p-17, -0x1.7cd6f27b3f020p-18,
        0x1.7e0201539310ep-20, -0x1.ea23269c140a7p-36, -0x1.c3e0b02da7bf9p-11, 0x1.9b0ff6874f2c4p-11, -0x1.3999a85a4237ap-12,
        -0x1.88f2ae1def9d0p-20, 0x1.16908b48ce058p-14, -0x1.4ce3fd902bcadp-15, 0x1.7db4c02846e81p-17, 0x1.13b3c5b7cb45ep-32,
        -0x1.6128ac5a4fa71p-12, -0x1.247604839c038p-14, 0x1.22be87360ef1fp-12, -0x1.a2042c5148e27p-13, 0x1.1d1e9cb24760bp-14,
        0x1.30bdcf208080ep-23, 0x1.168ef1b0931c8p-11, -0x1.36773bdb97b48p-11},
};
#endif

#endif
