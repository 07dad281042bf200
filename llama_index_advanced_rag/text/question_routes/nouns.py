"""The nouns that the rules share: documents, and what stands in a relation to something else."""


def either(words: str) -> str:
    """An alternation of words, spaces in a word written as `_`, with the plural that adds an s.

    Example:
        >>> import re
        >>> re.findall(either("parent_company film"), "films of parent company")
        ['films', 'parent company']
    """
    return f"(?:{'|'.join(sorted((word.replace('_', ' ') for word in words.split()), key=len, reverse=True))})s?"


DOCUMENT = {
    "en": either("""
        manual handbook guide report contract agreement lease polic(?:y|ies) act law code regulation directive statute bylaw charter novel book play
        poem story document file thesis dissertation paper study leaflet brochure minutes agenda filing prospectus form specification constitution
        treaty newsletter budget judg(?:e)?ment letter memo protocol catalogue volume chapter section annex appendix 10-k 10-q annual_report
        quarterly_report gdpr text part booklet collection anthology white_paper terms_and_conditions terms_of_service press_release data_sheet
        user_guide package_insert proposal by-law tender
        """),
    "fr": either("""
        manuel guide rapport contrat accord bail politique loi code reglement directive statut charte roman livre piece poeme recit document fichier
        these memoire etude enquete notice brochure depliant proces-verba(?:l|ux) pv compte[_-]rendu ordre_du_jour formulaire norme constitution
        traite encyclopedie tome chapitre section annexe avenant convention livret budget testament jugement arrete lettre note protocole catalogue
        cahier_des_charges rgpd bulletin rapport_annuel bilan conte nouvelle texte mode_d'emploi prospectus mode[_-]operatoire partie recueil
        anthologie
        """),
}

RELATIVE = {
    "en": either("""
        mother father brother sister wife wives husband son daughter spouse partner parent child children grandfather grandmother uncle aunt cousin
        widow(?:er)? boss supervisor country_of_origin nephew niece fiance brother-in-law sister-in-law father-in-law mother-in-law son-in-law
        daughter-in-law stepfather stepmother half-brother mentor teacher tutor pupil student rival colleague friend assistant author writer
        director composer painter architect founder co-founder cofounder publisher editor translator producer screenwriter singer performer inventor
        creator designer illustrator conductor lyricist songwriter artist sculptor photographer narrator biographer presenter host owner
        manufacturer maker supplier landlord tenant contractor subcontractor employer sponsor insurer auditor operator builder distributor vendor
        parent_compan(?:y|ies) subsidiar(?:y|ies) holding_company chairman chairwoman chair ceo cfo president mayor bishop king queen leader
        successor predecessor captain coach commander discoverer birthplace place_of_birth home_?town hometown alma_mater former_club club developer
        record_label label production_company studio broadcaster network architects killer murderer assassin namesake protagonist heroine hero star
        lead_actor lead_actress actor actress drummer guitarist frontman bassist keyboardist co-?founder head winner holder receiver recipient
        victim
        """),
    "fr": either("""
        mere pere frere sœur soeur femme epouse epoux mari fils fille conjoint compagne compagnon veuve veuf grand-pere grand-mere oncle tante
        cousin cousine neveu niece beau-pere belle-mere beau-frere belle-sœur belle-soeur gendre beau-fils belle-fille demi-frere mentor professeur
        eleve rival rivale collegue ami amie assistant assistante parrain marraine pays_d'origine ville_d'origine auteur autrice ecrivain
        realisateur realisatrice compositeur compositrice peintre architecte fondateur fondatrice cofondateur cofondatrice editeur editrice
        traducteur traductrice producteur productrice scenariste interprete inventeur inventrice createur creatrice dessinateur illustrateur
        parolier sculpteur sculptrice photographe narrateur narratrice biographe presentateur presentatrice romancier romanciere proprietaire
        fabricant constructeur fournisseur bailleur locataire prestataire employeur sponsor assureur exploitant distributeur sous-traitant
        maison[_-]mere societe[_-]mere filiale patron patronne pdg president presidente maire eveque roi reine chef dirigeant successeur
        predecesseur capitaine entraineur entraineuse decouvreur lieu_de_naissance ville_natale pays_natal club_formateur ancien_club club
        maison_de_disques studio assassin meurtrier heros heroine protagoniste chanteur chanteuse acteur actrice batteur guitariste developpeur
        maitre_d'œuvre commanditaire concepteur conceptrice grand-(?:pere|mere) cousine? rivale? realisat(?:eur|rice) composit(?:eur|rice)
        (?:co)?fondat(?:eur|rice) edit(?:eur|rice) traduct(?:eur|rice) product(?:eur|rice) invent(?:eur|rice) creat(?:eur|rice) romanci(?:er|ere)
        construct(?:eur|rice) patronne? presidente? dirigeante? entraineu(?:r|se) laureate? gagnante? vainqueur titulaire victime chanteu(?:r|se)
        act(?:eur|rice) concept(?:eur|rice)
        """),
}
"""Who or what somebody or something has: with `of` or `de` behind it, it describes one thing through another."""

ENTITY = {
    "en": either("""
        startup factor(?:y|ies) person man woman people compan(?:y|ies) firm bank agenc(?:y|ies) countr(?:y|ies) cit(?:y|ies) town village island river school
        universit(?:y|ies) newspaper magazine film movie novel song band album team station building ship war battle state county region province
        district street lake mountain museum theatre theater college institute laborator(?:y|ies) lab organi[sz]ation association part(?:y|ies)
        group hospital church castle bridge airport series show play opera game solvent chemical drug device part manager officer scientist
        researcher poet pianist botanist engineer politician footballer player actor lawyer doctor physician nurse minister monarch emperor dynasty
        tribe league trust charity brand paper referee journal book house painting statue machine lighthouse hotel shop restaurant festival award
        prize treaty character product
        """),
    "fr": either("""
        start-up usine personne homme gens entreprise societe firme banque agence pays ville village ile fleuve riviere ecole lycee universite journal journaux
        revue film roman chanson groupe album equipe gare batiment immeuble navire bateau guerre bataille etat region province departement rue lac
        montagne musee theatre institut laboratoire organisation association parti hopita(?:l|ux) eglise chateau pont aeroport serie piece opera jeu
        solvant produit medicament appareil responsable scientifique chercheur chercheuse poete pianiste botaniste ingenieur ministre depute deputee
        troupe maison marque chambre_de_commerce cabinet notaire avocat avocate medecin commune fondation orchestre ligue dynastie empereur monarque
        savant savante voisin hotel restaurant phare boutique festival prix traite arbitre photographe livre cherche(?:ur|use) avocate? personnage
        """),
}
"""What a relative clause describes something through: the country where, l'entreprise qui."""
